package compare

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/hosttool"
)

// describeFAT finds the first path that differs in two FAT file systems, which
// mtools read where they lie in the image.
func describeFAT(ctx context.Context, a, b source, d *Difference) error {
	la, err := fatPaths(ctx, a)
	if err != nil {
		d.What = "content differs, and is no file system that can be read"
		return ctx.Err()
	}
	lb, err := fatPaths(ctx, b)
	if err != nil {
		return err
	}
	for i := range max(len(la), len(lb)) {
		switch {
		case i >= len(la):
			d.What = lb[i] + " is only in the second build"
			return nil
		case i >= len(lb):
			d.What = la[i] + " is only in the first build"
			return nil
		case la[i] != lb[i]:
			d.What = fmt.Sprintf("%s in the first build stands where %s does in the second", la[i], lb[i])
			return nil
		}
	}
	for _, path := range la {
		if strings.HasSuffix(path, "/") {
			continue
		}
		x, errA := fatDigest(ctx, a, path)
		y, errB := fatDigest(ctx, b, path)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		if x != y {
			d.What = path + " differs in content"
			return nil
		}
	}
	d.What = "same files, but other times, clusters or free space"
	return nil
}

// image is how mtools name a file system inside a file.
func (s source) image() string { return fmt.Sprintf("%s@@%d", s.path, s.offset) }

// fatPaths lists all paths in the order of the directories; those of directories
// end with a slash.
func fatPaths(ctx context.Context, s source) ([]string, error) {
	out, err := hosttool.Output(ctx, hosttool.Cmd{Name: "mdir", Args: []string{"-/", "-b", "-i", s.image(), "::"}})
	if err != nil {
		return nil, err
	}
	var paths []string
	for line := range strings.Lines(string(out)) {
		if p := strings.TrimPrefix(strings.TrimSpace(line), "::/"); p != "" {
			paths = append(paths, p)
		}
	}
	return paths, nil
}

func fatDigest(ctx context.Context, s source, path string) (digest.Digest, error) {
	h := sha256.New()
	err := hosttool.Run(ctx, hosttool.Cmd{Name: "mtype", Args: []string{"-i", s.image(), "::/" + path}, Stdout: io.Writer(h)})
	return digest.FromHash(h), err
}
