// Package compare says where two builds differ first, in words that lead to the
// cause: the path inside a squashfs, a FAT or an initramfs, not just a byte. It
// also builds again to find out whether a build can be reproduced.
package compare

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/imagebuild/chunk"
)

// Difference is where two builds differ first. Where is a place inside the file:
// a partition and byte, a path in a file system, an entry of an archive, a line.
type Difference struct {
	File  string `json:"file"`
	Where string `json:"where,omitempty"`
	What  string `json:"what"`
}

// String is the difference on one line.
func (d Difference) String() string {
	if d.Where == "" {
		return d.File + ": " + d.What
	}
	return d.File + ": " + d.Where + ": " + d.What
}

// Builds compares two builds byte by byte and describes the first difference, or
// returns nil. First means first in the order of causes: a changed plan before the
// seeds and the initramfs, these before the image that holds them, and the image
// before its compressed forms and the documents that name its digest.
func Builds(ctx context.Context, dirA, dirB string) (*Difference, error) {
	a, b := side{dir: dirA, name: "first build"}, side{dir: dirB, name: "second build"}
	if err := errors.Join(a.read(), b.read()); err != nil {
		return nil, fmt.Errorf("comparing builds: %w", err)
	}
	for _, f := range union(a.files, b.files) {
		d, err := compareFile(ctx, a, b, f)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", f.Name, err)
		}
		if d != nil {
			return d, nil
		}
	}
	return nil, nil
}

// side is one of the two builds.
type side struct {
	dir, name string
	index     artifact.Index
	files     map[string]artifact.File
}

func (s *side) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// read lists the files that are there; the index only tells their roles.
func (s *side) read() error {
	data, err := os.ReadFile(s.path(artifact.IndexName))
	if err != nil {
		return err
	}
	if s.index, err = artifact.Decode(data); err != nil {
		return fmt.Errorf("%s: %w", s.dir, err)
	}
	s.files = map[string]artifact.File{}
	err = filepath.WalkDir(s.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.dir, p)
		name = filepath.ToSlash(name)
		s.files[name] = artifact.File{Name: name}
		return err
	})
	for _, f := range s.index.Files {
		if _, ok := s.files[f.Name]; ok {
			s.files[f.Name] = f
		}
	}
	return err
}

// causes is the order in which files are compared. Whatever has no role, the
// index and its signature above all, comes last.
func causes() []artifact.Role {
	return []artifact.Role{
		artifact.RolePlan, artifact.RoleSeed, artifact.RolePayload, artifact.RoleKernel, artifact.RoleInitrd, artifact.RoleInstaller, artifact.RoleIPXE, artifact.RoleSlot,
		artifact.RoleDiskRaw, artifact.RoleDiskZstd, artifact.RoleDiskQcow2, artifact.RoleSBOM, artifact.RoleProvenance,
	}
}

func union(a, b map[string]artifact.File) []artifact.File {
	var out []artifact.File
	for _, f := range a {
		out = append(out, f)
	}
	for name, f := range b {
		if _, ok := a[name]; !ok {
			out = append(out, f)
		}
	}
	order := causes()
	rank := func(f artifact.File) int {
		if i := slices.Index(order, f.Role); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(out, func(x, y artifact.File) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x.Name, y.Name))
	})
	return out
}

func compareFile(ctx context.Context, a, b side, f artifact.File) (*Difference, error) {
	for _, s := range []side{a, b} {
		if _, ok := s.files[f.Name]; !ok {
			return &Difference{File: f.Name, What: "is missing in the " + s.name}, nil
		}
	}
	at, err := firstByte(ctx, a.path(f.Name), b.path(f.Name))
	if err != nil || at < 0 {
		return nil, err
	}
	d := &Difference{File: f.Name, Where: fmt.Sprintf("byte %d", at), What: "content differs"}
	err = describe(ctx, a, b, f, at, d)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, hosttool.ErrMissing):
		return nil, err
	case err != nil: // one of them is damaged, which is a difference as well
		d.What = "content differs, and one of the two cannot be read: " + strings.Join(strings.Fields(err.Error()), " ")
	}
	return d, nil
}

// describe looks into the file for what a person would call the difference.
func describe(ctx context.Context, a, b side, f artifact.File, at int64, d *Difference) error {
	switch f.Role {
	case artifact.RoleSlot:
		return describeSquashfs(ctx, source{a.path(f.Name), 0}, source{b.path(f.Name), 0}, d)
	case artifact.RoleDiskRaw:
		return describeImage(ctx, a, b, f, at, d)
	case artifact.RoleDiskZstd:
		describeChunk(a.index.Disk, at, d)
		return nil
	case artifact.RoleInitrd, artifact.RoleInstaller:
		return describeInitrd(a.path(f.Name), b.path(f.Name), d)
	case artifact.RoleKernel, artifact.RoleIPXE, artifact.RoleDiskQcow2:
		return nil
	}
	return describeText(a.path(f.Name), b.path(f.Name), d)
}

// describeImage names the partition, and the file inside it.
func describeImage(ctx context.Context, a, b side, f artifact.File, at int64, d *Difference) error {
	d.Where = fmt.Sprintf("byte %d, %s", at, a.index.Disk.At(at))
	p, ok := partitionAt(a.index.Disk, at)
	if q, also := b.index.Disk.Partition(p.Name); !ok || !also || p != q {
		d.What = "partitions or their table differ"
		return nil
	}
	x, y := source{a.path(f.Name), p.Offset}, source{b.path(f.Name), p.Offset}
	var magic [4]byte
	file, err := os.Open(x.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.ReadAt(magic[:], p.Offset); err != nil {
		return err
	}
	if string(magic[:]) == "hsqs" {
		return describeSquashfs(ctx, x, y, d)
	}
	return describeFAT(ctx, x, y, d)
}

func partitionAt(d artifact.Disk, at int64) (artifact.Partition, bool) {
	for _, p := range d.Partitions {
		if at >= p.Offset && at < p.Offset+p.Size {
			return p, true
		}
	}
	return artifact.Partition{}, false
}

func describeChunk(disk artifact.Disk, at int64, d *Difference) {
	for i, c := range disk.Chunks {
		if at < c.Offset+c.Size {
			offset, _ := disk.Span(i)
			d.Where = fmt.Sprintf("byte %d, chunk %d (%s)", at, i, disk.At(offset))
			d.What = "the same image is compressed in another way"
			return
		}
	}
}

// describeText names the first line that differs.
func describeText(pathA, pathB string, d *Difference) error {
	a, errA := head(pathA)
	b, errB := head(pathB)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	la, lb := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(la), len(lb)) {
		if !bytes.Equal(la[i], lb[i]) {
			d.Where = fmt.Sprintf("line %d", i+1)
			d.What = fmt.Sprintf("%s in the first build, %s in the second", quote(la[i]), quote(lb[i]))
			return nil
		}
	}
	return nil
}

func quote(line []byte) string {
	const most = 120
	s := strings.TrimSpace(string(line))
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// maxText bounds what is read of a document, bytes.
const maxText = 32 << 20

// head is the beginning of a document.
func head(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxText))
}

// firstByte is the offset of the first byte in which two files differ, or -1. It
// does not read where both have a hole.
func firstByte(ctx context.Context, pathA, pathB string) (int64, error) {
	a, err := os.Open(pathA)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	b, err := os.Open(pathB)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	sa, errA := a.Stat()
	sb, errB := b.Stat()
	if err := errors.Join(errA, errB); err != nil {
		return 0, err
	}
	common := min(sa.Size(), sb.Size())
	at, err := firstDifference(ctx, a, b, common)
	if err != nil || at >= 0 {
		return at, err
	}
	if sa.Size() != sb.Size() {
		return common, nil
	}
	return -1, nil
}

func firstDifference(ctx context.Context, a, b *os.File, size int64) (int64, error) {
	const step = 1 << 20
	holesA, holesB := chunk.NewHoles(a, size), chunk.NewHoles(b, size)
	bufA, bufB := make([]byte, step), make([]byte, step)
	for at := int64(0); at < size; at += step {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		n := min(step, size-at)
		emptyA, errA := holesA.Covers(at, n)
		emptyB, errB := holesB.Covers(at, n)
		if err := errors.Join(errA, errB); err != nil {
			return 0, err
		}
		if emptyA && emptyB {
			continue
		}
		_, errA = a.ReadAt(bufA[:n], at)
		_, errB = b.ReadAt(bufB[:n], at)
		if err := errors.Join(errA, errB); err != nil {
			return 0, err
		}
		if bytes.Equal(bufA[:n], bufB[:n]) {
			continue
		}
		for i := range n {
			if bufA[i] != bufB[i] {
				return at + i, nil
			}
		}
	}
	return -1, nil
}
