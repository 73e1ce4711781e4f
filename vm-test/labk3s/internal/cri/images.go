package cri

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

// Import imports the tarballs of a directory, plain or compressed with gzip or zstd.
// One that cannot be read does not keep the others out; k3s starts without it, too.
func Import(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !tarball(e.Name()) {
			continue
		}
		if err := importFile(ctx, path); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			slog.Error("Error encountered while importing images", "file", path, "err", err)
		}
	}
	return nil
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
	f, err := os.Open(path) // may be a link into the image of the slot
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
