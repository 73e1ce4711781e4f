// Package registry reads container images from registries that speak the OCI
// distribution protocol, as far as a pin and a fetch need it: a manifest by tag or
// digest, for linux/amd64, and who may read the blobs that it names.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/slipway/slipway/internal/digest"
)

// Media types of manifests and of lists of them: OCI's and Docker's.
const (
	ociIndex       = "application/vnd.oci.image.index.v1+json"
	ociManifest    = "application/vnd.oci.image.manifest.v1+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

// maxManifest bounds a manifest, bytes; the distribution specification wants
// registries to take 4 MiB.
const maxManifest = 4 << 20

// Client reads images. HTTP must be set.
type Client struct{ HTTP *http.Client }

// Reference is an image in full form: registry, repository, and a tag or a digest.
type Reference struct{ Host, Repository, Tag string }

var fullForm = regexp.MustCompile(`^([A-Za-z0-9.-]+(?::[0-9]+)?)/([a-z0-9._/-]+)[:@]([A-Za-z0-9_][A-Za-z0-9._:-]*)$`)

// Parse reads a reference in full form.
func Parse(ref string) (Reference, error) {
	m := fullForm.FindStringSubmatch(ref)
	if m == nil {
		return Reference{}, fmt.Errorf("not the full name of a container image: %q", ref)
	}
	return Reference{m[1], m[2], m[3]}, nil
}

// host is where the registry answers: Docker's has another name than its images.
func (r Reference) host() string {
	if r.Host == "docker.io" {
		return "registry-1.docker.io"
	}
	return r.Host
}

// scheme is https but for a registry on this machine, as everybody else has it.
func (r Reference) scheme() string {
	name, _, _ := strings.Cut(r.Host, ":")
	if a, err := netip.ParseAddr(name); name == "localhost" || err == nil && a.IsLoopback() {
		return "http"
	}
	return "https"
}

// Descriptor names a blob.
type Descriptor struct {
	MediaType string        `json:"mediaType"`
	Digest    digest.Digest `json:"digest"`
	Size      int64         `json:"size"` // bytes
	Platform  *struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	} `json:"platform,omitempty"`
}

// Manifest is what an image consists of.
type Manifest struct {
	MediaType string       `json:"mediaType"`
	Config    Descriptor   `json:"config"`
	Layers    []Descriptor `json:"layers"`
	Manifests []Descriptor `json:"manifests"` // of a list; an image has none
}

// Blobs are all blobs of an image, each once.
func (m Manifest) Blobs() []Descriptor {
	var out []Descriptor
	seen := map[digest.Digest]bool{}
	for _, d := range append([]Descriptor{m.Config}, m.Layers...) {
		if !seen[d.Digest] {
			seen[d.Digest] = true
			out = append(out, d)
		}
	}
	return out
}

// Size is the image with its manifest of n bytes.
func (m Manifest) Size(n int64) int64 {
	for _, d := range m.Blobs() {
		n += d.Size
	}
	return n
}

// Decode reads the manifest of an image.
func Decode(data []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	if m.Config.Digest.IsZero() || len(m.Layers) == 0 || len(m.Manifests) > 0 {
		return m, errors.New("manifest: not that of an image")
	}
	return m, nil
}

// Manifest gets the manifest of an image, as it is. Of one with several platforms it
// is that for linux/amd64, checked against the list that names it.
func (c Client) Manifest(ctx context.Context, r Reference) ([]byte, error) {
	data, err := c.manifest(ctx, r)
	if err != nil {
		return nil, err
	}
	var list Manifest
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s/%s: manifest: %w", r.Host, r.Repository, err)
	}
	if len(list.Manifests) == 0 {
		_, err := Decode(data)
		return data, err
	}
	for _, d := range list.Manifests {
		if d.Platform == nil || d.Platform.OS != "linux" || d.Platform.Architecture != "amd64" {
			continue
		}
		r.Tag = d.Digest.String()
		if data, err = c.manifest(ctx, r); err != nil {
			return nil, err
		}
		_, err := Decode(data)
		return data, err
	}
	return nil, fmt.Errorf("%s/%s:%s: no image for linux/amd64", r.Host, r.Repository, r.Tag)
}

// manifest gets one manifest or list; one that is asked for by digest is checked.
func (c Client) manifest(ctx context.Context, r Reference) ([]byte, error) {
	u := c.url(r, "manifests", r.Tag)
	resp, err := c.get(ctx, u, r, strings.Join([]string{ociIndex, ociManifest, dockerList, dockerManifest}, ", "))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u, err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("%s: a manifest of more than %d bytes", u, maxManifest)
	}
	if want, err := digest.Parse(r.Tag); err == nil {
		if err := digest.Check(want, digest.Of(data)); err != nil {
			return nil, fmt.Errorf("%s: %w", u, err)
		}
	}
	return data, nil
}

func (c Client) url(r Reference, kind, name string) string {
	return r.scheme() + "://" + r.host() + "/v2/" + r.Repository + "/" + kind + "/" + name
}

// Blob is where a blob of an image is, and the header that a request for it needs;
// "" when anybody may read it.
func (c Client) Blob(ctx context.Context, r Reference, d digest.Digest) (address, authorization string, err error) {
	u := c.url(r, "blobs", d.String())
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u, nil)
	if err != nil {
		return "", "", err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return "", "", err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		return u, "", nil // whatever else it is, the download finds out
	}
	authorization, err = c.token(ctx, resp.Header.Get("WWW-Authenticate"), r)
	return u, authorization, err
}

// get asks, and asks again with a token when the registry wants one.
func (c Client) get(ctx context.Context, u string, r Reference, accept string) (*http.Response, error) {
	authorization := ""
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", accept)
		req.Header.Set("User-Agent", "slipway-imagebuild")
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := c.HTTP.Do(req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized || authorization != "" {
			return nil, fmt.Errorf("%s: %s", u, resp.Status)
		}
		if authorization, err = c.token(ctx, resp.Header.Get("WWW-Authenticate"), r); err != nil {
			return nil, err
		}
	}
}

// challenge is one parameter of a WWW-Authenticate header.
var challenge = regexp.MustCompile(`([a-z]+)="([^"]*)"`)

// token asks for the right to read a repository as nobody in particular.
func (c Client) token(ctx context.Context, header string, r Reference) (string, error) {
	scheme, rest, _ := strings.Cut(header, " ")
	params := map[string]string{}
	for _, m := range challenge.FindAllStringSubmatch(rest, -1) {
		params[m[1]] = m[2]
	}
	if !strings.EqualFold(scheme, "Bearer") || params["realm"] == "" {
		return "", fmt.Errorf("%s wants a login (%s), which images of a bundle must not need", r.Host, scheme)
	}
	query := url.Values{"service": {params["service"]}, "scope": {"repository:" + r.Repository + ":pull"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, params["realm"]+"?"+query.Encode(), nil)
	if err != nil {
		return "", fmt.Errorf("%s: bad realm: %w", r.Host, err)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct {
		Token string `json:"token"`
		Other string `json:"access_token"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxManifest)).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s gives no token: %s", params["realm"], resp.Status)
	}
	if answer.Token == "" {
		answer.Token = answer.Other
	}
	return "Bearer " + answer.Token, nil
}
