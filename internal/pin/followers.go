package pin

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/digest"
)

// FluxControllers are the controllers that a cluster gets, as Flux's own installer
// has them by default; what automates image updates is left out.
var FluxControllers = []string{"source-controller", "kustomize-controller", "helm-controller", "notification-controller"}

// release is a line of a kustomization that takes a controller's deployment from a
// release: the controller, and its version without the v.
var release = regexp.MustCompile(`^\s*- https://github\.com/fluxcd/([a-z-]+)/releases/download/v([0-9.]+)/[a-z-]+\.deployment\.yaml\s*$`)

// Followers are the artifacts that another one asks for, as wanted: without digests.
func (l *Lock) Followers(name string) []Artifact {
	var out []Artifact
	for _, a := range l.Artifacts {
		if a.For == name && a.Kind != KindImage {
			a.H1, a.Size, a.Digest, a.Unpinned = "", 0, digest.Digest{}, ""
			out = append(out, a)
		}
	}
	return out
}

// FluxFollowers reads the tar of Flux's manifests and lists the modules of the
// controllers that they name, without digests. A release of Flux knows best which
// versions belong together.
func FluxFollowers(manifests io.Reader) ([]Artifact, error) {
	versions := map[string]string{}
	tr := tar.NewReader(manifests)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading Flux's manifests: %w", err)
		}
		if path.Base(h.Name) != "kustomization.yaml" {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(tr, 1<<20))
		if err != nil {
			return nil, fmt.Errorf("reading Flux's manifests: %s: %w", h.Name, err)
		}
		for line := range strings.Lines(string(text)) {
			if m := release.FindStringSubmatch(line); m != nil {
				versions[m[1]] = m[2]
			}
		}
	}
	var out []Artifact
	for _, name := range FluxControllers {
		if versions[name] == "" {
			return nil, fmt.Errorf("Flux's manifests name no release of %s", name)
		}
		out = append(out, Artifact{
			Name: "flux-" + name, Version: versions[name], For: ArtifactFlux, Kind: KindGoModule,
			Source: "github.com/fluxcd/" + name + "@v" + versions[name], Subdir: "config",
		})
	}
	slices.SortFunc(out, func(a, b Artifact) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
