package stick

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/artifact/unpack"
	"github.com/slipway/slipway/internal/bootentry"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/imagebuild/chunk"
	"github.com/slipway/slipway/internal/imagebuild/diskimage"
	"github.com/slipway/slipway/internal/imagebuild/fatimage"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install/bundle"
	"github.com/slipway/slipway/internal/progress"
)

// Names in the work directory.
const (
	stickName  = "stick"
	espName    = "esp"
	loaderName = "loader"
)

// Check implements usb.Content: it verifies the build, puts the stick together in a
// file, and compares what came out with the index.
func (s *Stick) Check(ctx context.Context, p progress.Reporter) error {
	if err := s.makeWorkDir(); err != nil {
		return err
	}
	if err := s.checkImage(ctx, p); err != nil {
		return explain(fmt.Errorf("checking image: %w", err), s.work)
	}
	task := p.Start("put the stick together", 0)
	err := s.fill(ctx)
	task.Done("", err)
	if err != nil {
		return explain(fmt.Errorf("putting the stick together: %w", err), s.work)
	}
	return nil
}

// explain adds a hint to the error of a full disk.
func explain(err error, dir string) error {
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return diag.WithHint(err, "free some space where "+dir+" is; TMPDIR names another place")
}

// checkImage reads the whole image and keeps its EFI system partition: the boot
// loader in it is the one that the signature covers.
func (s *Stick) checkImage(ctx context.Context, p progress.Reporter) error {
	disk := s.image.Index.Disk
	esp, ok := disk.Partition(disklayout.NameESP)
	if !ok {
		return fmt.Errorf("the image has no partition %s", disklayout.NameESP)
	}
	out, err := os.Create(s.path(espName))
	if err != nil {
		return err
	}
	task := p.Start("check image", disk.Size)
	err = out.Truncate(esp.Size)
	if err == nil {
		err = s.image.Each(ctx, func(c unpack.Chunk) error {
			task.Add(c.Length)
			from, to := max(esp.Offset, c.Offset), min(esp.Offset+esp.Size, c.Offset+c.Length)
			if c.Data == nil || from >= to {
				return nil
			}
			_, err := out.WriteAt(c.Data[from-c.Offset:to-c.Offset], from-esp.Offset)
			return err
		})
	}
	err = errors.Join(err, out.Close())
	task.Done("", err)
	if err != nil {
		return err
	}
	return s.takeLoader(ctx)
}

func (s *Stick) takeLoader(ctx context.Context) error {
	out, err := os.Create(s.path(loaderName))
	if err != nil {
		return err
	}
	err = fatimage.Read(ctx, s.path(espName), 0, bootentry.LoaderPath, out)
	return errors.Join(err, out.Close(), os.Remove(s.path(espName)))
}

// fill makes the file of the stick.
func (s *Stick) fill(ctx context.Context) error {
	if err := diskimage.Create(s.path(stickName), s.layout); err != nil {
		return err
	}
	if err := s.partitionOf(ctx, disklayout.NameStickESP, "SLIPWAYBOOT", s.bootFiles()); err != nil {
		return err
	}
	files, err := bundle.Files(s.spec)
	if err != nil {
		return err
	}
	var entries []fatimage.Entry
	for _, f := range files {
		entries = append(entries, fatimage.Entry(f))
	}
	return s.partitionOf(ctx, disklayout.NameBundle, "SLIPWAYINST", entries)
}

// bootFiles is what firmware starts.
func (s *Stick) bootFiles() []fatimage.Entry {
	words := []string{machine.WordMode + "=" + machine.ModeInstall}
	for _, c := range s.opt.Cluster.System.ExtraConsole {
		words = append(words, "console="+c)
	}
	x := s.image.Index
	entry := bootentry.Installer{
		Title: "Slipway installer " + x.Environment + " " + x.Plan.Short(), Words: words,
		Version: time.Unix(x.Epoch, 0).UTC().Format("20060102.150405"),
	}
	kernel, _ := x.One(artifact.RoleKernel) // see suits
	installer, _ := x.One(artifact.RoleInstaller)
	return []fatimage.Entry{
		{Path: bootentry.LoaderPath, Source: s.path(loaderName)},
		{Path: bootentry.ConfigPath, Content: bootentry.Loader()},
		{Path: bootentry.InstallerPath, Content: entry.Entry()},
		{Path: bootentry.InstallerKernel, Source: s.source(kernel.Name)},
		{Path: bootentry.InstallerInitrd, Source: s.source(installer.Name)},
	}
}

// partitionOf makes the file system of a partition and reads every file back.
func (s *Stick) partitionOf(ctx context.Context, name, label string, entries []fatimage.Entry) error {
	p := s.partition(name)
	err := fatimage.Write(ctx, s.path(stickName), p.Offset, fatimage.Spec{
		Label: label, Seed: p.GUID, Type: fatimage.FAT32, Size: p.Size, SectorSize: diskimage.SectorSize,
		Entries: entries, Epoch: s.opt.Now.Unix(),
	})
	if err != nil {
		return err
	}
	for _, e := range entries {
		want, err := s.digestOf(e)
		if err != nil {
			return err
		}
		w := digest.NewWriter(io.Discard)
		if err := fatimage.Read(ctx, s.path(stickName), p.Offset, e.Path, w); err != nil {
			return err
		}
		if err := digest.Check(want, w.Sum()); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	return nil
}

// digestOf is what a file of the stick must be: what the index says, for a file
// that is copied from the build.
func (s *Stick) digestOf(e fatimage.Entry) (digest.Digest, error) {
	switch e.Source {
	case "":
		return digest.Of(e.Content), nil
	case s.source(artifact.IndexName):
		return s.image.Digest, nil
	case s.source(artifact.SignatureName), s.path(loaderName):
		data, err := os.ReadFile(e.Source)
		return digest.Of(data), err
	}
	for _, f := range s.image.Index.Files {
		if s.source(f.Name) == e.Source {
			return f.Digest, nil
		}
	}
	return digest.Digest{}, fmt.Errorf("%s is no file of the build", e.Source)
}

// Each implements usb.Content, after Check.
func (s *Stick) Each(ctx context.Context, do func(unpack.Chunk) error) error {
	f, err := os.Open(s.path(stickName))
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, chunk.Size)
	for i, at := 0, int64(0); at < s.layout.Size; i, at = i+1, at+chunk.Size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c := unpack.Chunk{Index: i, Offset: at, Length: min(chunk.Size, s.layout.Size-at)}
		if _, err := f.ReadAt(buf[:c.Length], at); err != nil {
			return err
		}
		if c.Data = buf[:c.Length]; unpack.Zero(c.Data) {
			c.Data = nil
		}
		if err := do(c); err != nil {
			return err
		}
	}
	return nil
}
