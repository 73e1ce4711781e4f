// Package squash makes what a slot holds: a squashfs image, padded to whole
// blocks, followed by the dm-verity superblock and hash tree that protect it.
package squash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/hosttool"
)

// BlockSize of the verity tree, in bytes; the squashfs is padded to it.
const BlockSize = 4096

// Request says how to make a slot image.
type Request struct {
	Path  string // where to write; must not exist
	Level int    // zstd level, 1-22
	Epoch int64  // SOURCE_DATE_EPOCH, seconds
	UUID  string // of the verity superblock
	Salt  digest.Digest
}

// Slot describes a finished slot image.
type Slot struct {
	Squashfs int64         `json:"squashfs"` // bytes of squashfs with padding; the verity superblock follows
	Content  int64         `json:"content"`  // bytes altogether
	RootHash string        `json:"rootHash"` // hex
	Digest   digest.Digest `json:"digest"`   // of all bytes
}

// Build reads a tar stream from tree, a function that writes it, and makes the
// slot image. The bytes do not depend on the number of cores.
func Build(ctx context.Context, req Request, tree func(io.Writer) error) (Slot, error) {
	if err := mksquashfs(ctx, req, tree); err != nil {
		return Slot{}, fmt.Errorf("making squashfs: %w", err)
	}
	size, err := pad(req.Path)
	if err != nil {
		return Slot{}, fmt.Errorf("padding squashfs: %w", err)
	}
	root, err := addVerity(ctx, req, size)
	if err != nil {
		return Slot{}, fmt.Errorf("making verity tree: %w", err)
	}
	sum, total, err := sum(req.Path)
	if err != nil {
		return Slot{}, fmt.Errorf("reading slot image: %w", err)
	}
	return Slot{Squashfs: size, Content: total, RootHash: root, Digest: sum}, nil
}

func mksquashfs(ctx context.Context, req Request, tree func(io.Writer) error) error {
	r, w := io.Pipe()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		err := tree(w)
		w.CloseWithError(err)
		return err
	})
	g.Go(func() error {
		// Small blocks and no fragments: a boot reads thousands of small files,
		// and each of them would cost the decompression of a whole fragment.
		// It makes the image 7 % larger than 256 KiB blocks with fragments.
		args := []string{
			"-", req.Path, "-tar", "-noappend", "-quiet", "-no-progress", "-no-fragments",
			"-comp", "zstd", "-Xcompression-level", strconv.Itoa(req.Level), "-b", "128K", "-mem", "256M",
			"-root-mode", "0755", "-root-time", strconv.FormatInt(req.Epoch, 10),
		}
		err := hosttool.Run(ctx, asRoot(hosttool.Cmd{Name: "mksquashfs", Stdin: r, Epoch: req.Epoch, Args: args}))
		r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		return err
	})
	return g.Wait()
}

// asRoot runs the tool as root of a user name space of its own. The tar stream has
// no entry for the root directory, and mksquashfs gives that to whoever runs it;
// its -root-uid has no effect on a tar stream (4.5.1).
func asRoot(c hosttool.Cmd) hosttool.Cmd {
	if os.Geteuid() == 0 {
		return c
	}
	c.Name, c.Args = "unshare", append([]string{"--map-root-user", c.Name}, c.Args...)
	return c
}

// pad extends the file to whole blocks and returns its size. mksquashfs pads to
// 4096 bytes by itself; this does not rely on it.
func pad(path string) (int64, error) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	size := (st.Size() + BlockSize - 1) / BlockSize * BlockSize
	return size, os.Truncate(path, size)
}

var rootHashLine = regexp.MustCompile(`(?m)^Root hash:\s+([0-9a-f]{64})$`)

func addVerity(ctx context.Context, req Request, offset int64) (string, error) {
	out, err := hosttool.Output(ctx, hosttool.Cmd{Name: "veritysetup", Args: []string{
		"format", req.Path, req.Path,
		"--hash=sha256", "--data-block-size=4096", "--hash-block-size=4096",
		"--data-blocks=" + strconv.FormatInt(offset/BlockSize, 10),
		"--hash-offset=" + strconv.FormatInt(offset, 10),
		"--salt=" + req.Salt.Hex(), "--uuid=" + strings.ToLower(req.UUID),
	}})
	if err != nil {
		return "", err
	}
	m := rootHashLine.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("veritysetup printed no root hash")
	}
	return string(m[1]), nil
}

func sum(path string) (digest.Digest, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return digest.Digest{}, 0, err
	}
	defer f.Close()
	w := digest.NewWriter(io.Discard)
	_, err = io.Copy(w, f)
	return w.Sum(), w.Size(), err
}
