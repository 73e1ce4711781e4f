package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway/slipway/internal/payload/imageset"
)

// maxIndex bounds the lists in an archive of images, bytes.
const maxIndex = 16 << 20

// Held are the container images in an archive, in full form, sorted: one that docker
// or skopeo saved, or an OCI layout whose images have names. containerd reads both.
func Held(ctx context.Context, file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, _, err := unpacked(f)
	if err != nil {
		return nil, fmt.Errorf("archive of images %s: %w", file, err)
	}
	defer r.Close()
	var out []string
	tr := tar.NewReader(r)
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			var names []string
			names, err = namesIn(h.Name, tr)
			out = append(out, names...)
		}
		if err != nil {
			return nil, fmt.Errorf("archive of images %s: %w", file, err)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Extension is how the name of an archive must end, so that k3s unpacks it.
func Extension(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, extension, err := unpacked(f)
	if err != nil {
		return "", err
	}
	return extension, r.Close()
}

// unpacked reads through the compression that the first bytes tell.
func unpacked(f io.Reader) (r io.ReadCloser, extension string, err error) {
	in := bufio.NewReader(f)
	magic, err := in.Peek(4)
	if err != nil {
		return nil, "", fmt.Errorf("too short: %w", err)
	}
	switch {
	case isGzip(magic):
		r, err = gzip.NewReader(in)
		return r, ".tar.gz", err
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}): // RFC 8878
		d, err := zstd.NewReader(in)
		if err != nil {
			return nil, "", err
		}
		return d.IOReadCloser(), ".tar.zst", nil
	}
	return io.NopCloser(in), ".tar", nil
}

// namesIn reads the list of images, if an entry of an archive is one.
func namesIn(name string, r io.Reader) ([]string, error) {
	switch strings.TrimPrefix(name, "./") {
	case "manifest.json": // docker save
		var list []struct{ RepoTags []string }
		if err := decode(r, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var out []string
		for _, image := range list {
			for _, tag := range image.RepoTags {
				out = append(out, imageset.Full(tag))
			}
		}
		return out, nil
	case "index.json": // OCI image layout
		var index struct {
			Manifests []struct{ Annotations map[string]string }
		}
		if err := decode(r, &index); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var out []string
		for _, m := range index.Manifests {
			if ref := reference(m.Annotations); ref != "" {
				out = append(out, imageset.Full(ref))
			}
		}
		return out, nil
	}
	return nil, nil
}

// reference is the name of an image in an OCI layout. The annotation of the
// specification may hold a tag alone, which names nothing.
func reference(annotations map[string]string) string {
	if ref := annotations["io.containerd.image.name"]; ref != "" {
		return ref
	}
	if ref := annotations["org.opencontainers.image.ref.name"]; strings.Contains(ref, "/") {
		return ref
	}
	return ""
}

func decode(r io.Reader, into any) error {
	return json.NewDecoder(io.LimitReader(r, maxIndex)).Decode(into)
}
