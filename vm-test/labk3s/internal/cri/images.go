package cri

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

// Import imports the tarballs of a directory, plain or compressed with gzip or zstd,
// except those that were imported before and have not changed: containerd keeps what
// it has. A tarball that cannot be read does not keep the others out; k3s starts
// without it, too.
func (c Containerd) Import(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known := c.imported()
	now := map[string]bool{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !tarball(e.Name()) {
			continue
		}
		mark, err := markOf(path)
		if err == nil && !known[mark] {
			err = importFile(ctx, path)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			slog.Error("Error encountered while importing images", "file", path, "err", err)
		default:
			now[mark] = true
		}
	}
	return c.remember(now)
}

// markOf tells a tarball from what it was before, and from others: by its content,
// because files in an image that is built reproducibly have one time of change.
func markOf(path string) (string, error) {
	f, err := os.Open(path) // may be a link into the image of the slot
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)) + " " + path, nil
}

// memory is the file that lists what was imported. It lies with the images, so that
// it goes with them.
func (c Containerd) memory() string { return filepath.Join(c.root(), "imported") }

func (c Containerd) imported() map[string]bool {
	out := map[string]bool{}
	text, err := os.ReadFile(c.memory())
	if err != nil {
		return out // then everything is imported, which is right as well
	}
	for mark := range strings.Lines(string(text)) {
		out[strings.TrimSuffix(mark, "\n")] = true
	}
	return out
}

func (c Containerd) remember(marks map[string]bool) error {
	var b strings.Builder
	for _, mark := range slices.Sorted(maps.Keys(marks)) {
		fmt.Fprintln(&b, mark)
	}
	return os.WriteFile(c.memory(), []byte(b.String()), 0o600)
}

func tarball(name string) bool {
	for _, end := range []string{".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// importFile goes through the host's ctr, so that this needs no client library of the
// version of containerd that the host happens to have.
func importFile(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := decompress(path, f)
	if err != nil {
		return err
	}
	defer r.Close()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "ctr", "--address", Socket, "--namespace", "k8s.io", "images", "import", "-")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("ctr images import: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	slog.Info("Imported images", "file", path, "images", strings.Join(strings.Fields(said.String()), " "))
	return nil
}

func decompress(name string, r io.Reader) (io.ReadCloser, error) {
	switch {
	case strings.HasSuffix(name, "gz"):
		return gzip.NewReader(r)
	case strings.HasSuffix(name, "zst"):
		d, err := zstd.NewReader(r)
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	default:
		return io.NopCloser(r), nil
	}
}
