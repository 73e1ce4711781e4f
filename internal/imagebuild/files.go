package imagebuild

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
)

// writeFile makes a new file, flushed to disk, from what write gives.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// writeZstd is writeFile for a file that is only kept here: the fastest level.
func writeZstd(path string, write func(io.Writer) error) error {
	return writeFile(path, func(w io.Writer) error {
		enc, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			return err
		}
		err = write(enc)
		return errors.Join(err, enc.Close())
	})
}

// copyFile copies src to the new file dst and makes the directories above it.
func copyFile(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	return writeFile(dst, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

func fileDigest(path string) (digest.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return digest.Digest{}, err
	}
	defer f.Close()
	w := digest.NewWriter(io.Discard)
	_, err = io.Copy(w, f)
	return w.Sum(), err
}

// explainSpace adds a hint to the error of a full disk that has none yet.
func explainSpace(err error, dir string) error {
	if !errors.Is(err, syscall.ENOSPC) || diag.HintOf(err) != "" {
		return err
	}
	return diag.WithHint(fmt.Errorf("disk full: %w", err), "free some space in "+dir+", or choose another directory with -O")
}
