// Package ociarchive writes container images as one archive that containerd imports:
// an OCI image layout in a tar (image-spec, image-layout.md), in which every blob lies
// once, however many images have it.
package ociarchive

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/digest"
)

// Image is one image: its full name, and its manifest.
type Image struct {
	Name      string
	MediaType string
	Manifest  digest.Digest
	Size      int64                   // of the manifest, bytes
	Blobs     map[digest.Digest]int64 // config and layers, with their sizes in bytes
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      digest.Digest     `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Write writes the archive; open gives the content of a blob. The same images give
// the same bytes, in whatever order they come.
func Write(w io.Writer, images []Image, open func(digest.Digest) (io.ReadCloser, error)) error {
	images = slices.Clone(images)
	slices.SortFunc(images, func(a, b Image) int { return strings.Compare(a.Name, b.Name) })
	index := struct {
		Schema    int          `json:"schemaVersion"`
		MediaType string       `json:"mediaType"`
		Manifests []descriptor `json:"manifests"`
	}{Schema: 2, MediaType: "application/vnd.oci.image.index.v1+json", Manifests: []descriptor{}}
	blobs := map[digest.Digest]int64{}
	for _, i := range images {
		index.Manifests = append(index.Manifests, descriptor{i.MediaType, i.Manifest, i.Size, map[string]string{
			// The first is containerd's, the second the specification's.
			"io.containerd.image.name": i.Name, "org.opencontainers.image.ref.name": i.Name}})
		blobs[i.Manifest] = i.Size
		maps.Copy(blobs, i.Blobs)
	}
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	for _, f := range []struct{ name, content string }{{"oci-layout", `{"imageLayoutVersion":"1.0.0"}`}, {"index.json", string(text)}} {
		if err := entry(tw, f.name, int64(len(f.content)), strings.NewReader(f.content)); err != nil {
			return err
		}
	}
	for _, d := range slices.SortedFunc(maps.Keys(blobs), func(a, b digest.Digest) int { return strings.Compare(a.Hex(), b.Hex()) }) {
		if err := blob(tw, d, blobs[d], open); err != nil {
			return fmt.Errorf("blob %s: %w", d.Short(), err)
		}
	}
	return tw.Close()
}

func blob(tw *tar.Writer, d digest.Digest, size int64, open func(digest.Digest) (io.ReadCloser, error)) error {
	r, err := open(d)
	if err != nil {
		return err
	}
	defer r.Close()
	return entry(tw, "blobs/sha256/"+d.Hex(), size, r)
}

func entry(tw *tar.Writer, name string, size int64, r io.Reader) error {
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := io.Copy(tw, r)
	return err
}
