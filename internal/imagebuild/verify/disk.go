package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/artifact/gpt"
	"github.com/slipway/slipway/internal/hosttool"
)

// image opens the content of the disk: the raw image when it is as it was signed,
// else the compressed one. The name is the file it comes from, or "" for none.
func (e *examination) image(usable map[string]bool) (io.ReaderAt, io.Closer, string) {
	if f, ok := e.one(artifact.RoleDiskRaw, usable); ok && !e.found.any(f.Name) {
		if file, err := e.root.Open(f.Name); err == nil {
			return file, file, f.Name
		}
	}
	if f, ok := e.one(artifact.RoleDiskZstd, usable); ok && !e.found.any(f.Name) {
		if p, err := e.openPacked(); err == nil {
			return p, p, f.Name
		}
	}
	return nil, nil, ""
}

// disk holds both copies of the partition table against the index.
func (e *examination) disk(_ context.Context, usable map[string]bool) error {
	image, closer, name := e.image(usable)
	if image == nil {
		return nil
	}
	defer closer.Close()
	for _, what := range gpt.Check(image, e.index.Disk) {
		e.found.add(name, "%s", what)
	}
	return nil
}

// qcow2 lets qemu-img look for damage in the file's structure and compare its
// content with the raw image.
func (e *examination) qcow2(ctx context.Context, usable map[string]bool) error {
	f, ok := e.one(artifact.RoleDiskQcow2, usable)
	if !ok || e.found.any(f.Name) {
		return nil
	}
	said, err := qemuImg(ctx, "check", "-q", "-f", "qcow2", e.path(f))
	if err != nil {
		return err
	}
	if said != "" {
		e.found.add(f.Name, "qemu-img check: %s", said)
		return nil
	}
	if err := e.qcow2Size(ctx, f); err != nil {
		return err
	}
	raw, ok := e.one(artifact.RoleDiskRaw, usable)
	if !ok || e.found.any(raw.Name) {
		return nil
	}
	said, err = qemuImg(ctx, "compare", "-q", "-f", "raw", "-F", "qcow2", e.path(raw), e.path(f))
	if err != nil {
		return err
	}
	if said != "" {
		e.found.add(f.Name, "content is not that of %s: %s", raw.Name, said)
	}
	return nil
}

func (e *examination) qcow2Size(ctx context.Context, f artifact.File) error {
	out, err := hosttool.Output(ctx, hosttool.Cmd{Name: "qemu-img", Args: []string{"info", "--output=json", "-f", "qcow2", e.path(f)}})
	if err != nil {
		return err
	}
	var info struct {
		Size    int64  `json:"virtual-size"`
		Backing string `json:"backing-filename"`
	}
	if err := json.Unmarshal(out, &info); err != nil {
		return fmt.Errorf("qemu-img info: %w", err)
	}
	if info.Size != e.index.Disk.Size {
		e.found.add(f.Name, "is a disk of %d bytes, want %d", info.Size, e.index.Disk.Size)
	}
	if info.Backing != "" {
		e.found.add(f.Name, "depends on another file: %s", info.Backing)
	}
	return nil
}

// qemuImg runs a check; what it says against the image is returned, "" when
// nothing. An error is one of running it.
func qemuImg(ctx context.Context, args ...string) (string, error) {
	if _, err := hosttool.Find("qemu-img"); err != nil {
		return "", err
	}
	var said strings.Builder
	err := hosttool.Run(ctx, hosttool.Cmd{Name: "qemu-img", Args: args, Stdout: &said, Stderr: &said})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	text := strings.Join(strings.Fields(said.String()), " ")
	if err != nil && text == "" {
		text = "images differ"
	}
	if err == nil {
		return "", nil
	}
	return text, nil
}
