package imagebuild

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/bootentry"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/imagebuild/chunk"
	"github.com/slipway/slipway/internal/imagebuild/diskimage"
	"github.com/slipway/slipway/internal/imagebuild/fatimage"
)

func (b *builder) rawName() string   { return b.Plan.Name + ".raw" }
func (b *builder) zstdName() string  { return b.Plan.Name + ".raw.zst" }
func (b *builder) qcow2Name() string { return b.Plan.Name + ".qcow2" }

func (b *builder) path(name string) string { return filepath.Join(b.tmp, filepath.FromSlash(name)) }

// makeDisk lays out the disk image and fills its partitions.
func (b *builder) makeDisk(ctx context.Context) error {
	return b.task("putting the disk together", func() (string, error) {
		if err := b.layOut(); err != nil {
			return "", err
		}
		raw := b.path(b.rawName())
		if err := diskimage.Create(raw, b.layout); err != nil {
			return "", err
		}
		for _, fill := range []func(context.Context, string) error{b.fillESP, b.fillSlot, b.fillSeed} {
			if err := fill(ctx, raw); err != nil {
				return "", err
			}
		}
		return "", nil
	})
}

func (b *builder) layOut() error {
	size := b.Plan.Disk.SlotSize
	if size == 0 {
		size = disklayout.SlotSize(b.slot.Content)
	}
	if b.slot.Content > size {
		return diag.WithHint(fmt.Errorf("the slot's content has %s and does not fit into image.slotSize of %s",
			cluster.Size(b.slot.Content), cluster.Size(size)), "set image.slotSize to auto, or to at least "+cluster.Size(disklayout.SlotSize(b.slot.Content)).String())
	}
	var err error
	b.layout, err = disklayout.New(b.Plan.Digest().Hex(), b.Plan.Disk.ESPSize, size)
	return err
}

func (b *builder) partition(name string) (disklayout.Partition, error) {
	p, ok := b.layout.Find(name)
	if !ok {
		return p, fmt.Errorf("the layout has no partition %s", name)
	}
	return p, nil
}

// bootSlot is the entry of slot A, the one that an image has.
func (b *builder) bootSlot() bootentry.Slot {
	return bootentry.Slot{
		Letter:   "a",
		RootHash: b.slot.RootHash,
		Title:    "Slipway " + b.Plan.Environment + " " + b.Plan.Digest().Short(),
		Version:  time.Unix(b.Plan.Epoch, 0).UTC().Format("20060102.150405"),
		Options:  b.Plan.Kernel.CommandLine,
	}
}

func (b *builder) fillESP(ctx context.Context, raw string) error {
	p, err := b.partition(disklayout.NameESP)
	if err != nil {
		return err
	}
	loader := filepath.Join(b.paths.boot, bootSystemd)
	slot := b.bootSlot()
	return fatimage.Write(ctx, raw, p.Offset, fatimage.Spec{
		Label: "SLIPWAY-ESP", Seed: p.GUID, Type: fatimage.FAT32, Size: p.Size, SectorSize: diskimage.SectorSize, Epoch: b.Plan.Epoch,
		Entries: []fatimage.Entry{
			{Path: bootentry.LoaderPath, Source: loader},
			{Path: bootentry.SystemdPath, Source: loader},
			{Path: bootentry.ConfigPath, Content: bootentry.Loader()},
			{Path: slot.Path(), Content: slot.Entry()},
			{Path: slot.KernelPath(), Source: b.tree.VMLinuz()},
			{Path: slot.InitrdPath(), Source: b.paths.initrd},
		},
	})
}

func (b *builder) fillSlot(_ context.Context, raw string) error {
	p, err := b.partition(disklayout.NameSlotA)
	if err != nil {
		return err
	}
	_, err = diskimage.CopyInto(raw, p.Offset, p.Size, b.paths.slot)
	return err
}

func (b *builder) fillSeed(ctx context.Context, raw string) error {
	p, err := b.partition(disklayout.NameSeed)
	if err != nil {
		return err
	}
	spec := fatimage.Spec{Label: disklayout.NameSeed, Seed: p.GUID, Type: fatimage.FAT16, Size: p.Size, SectorSize: diskimage.SectorSize, Epoch: b.Plan.Epoch}
	for _, s := range b.seeds {
		if s.node == b.Plan.Disk.Seed {
			spec.Entries = fatimage.FromTree(s.tree)
		}
	}
	return fatimage.Write(ctx, raw, p.Offset, spec)
}

// packDisk makes the forms of the disk in which it travels.
func (b *builder) packDisk(ctx context.Context) error {
	raw := b.path(b.rawName())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return b.packZstd(ctx, raw) })
	g.Go(func() error {
		return b.task("converting to qcow2", func() (string, error) {
			return "", diskimage.Qcow2(ctx, raw, b.path(b.qcow2Name()))
		})
	})
	return g.Wait()
}

func (b *builder) packZstd(ctx context.Context, raw string) error {
	f, err := os.Open(raw)
	if err != nil {
		return err
	}
	defer f.Close()
	var rawSum, packedSum digest.Digest
	var chunks []artifact.Chunk
	err = writeFile(b.path(b.zstdName()), func(w io.Writer) (err error) {
		chunks, rawSum, packedSum, err = chunk.Pack(ctx, f, w, b.Progress)
		return err
	})
	if err != nil {
		return fmt.Errorf("compressing the disk image: %w", err)
	}
	b.index.Disk = artifact.Disk{
		Size: b.layout.Size, SectorSize: diskimage.SectorSize, GUID: b.layout.GUID,
		ChunkSize: chunk.Size, Chunks: chunks,
	}
	for _, p := range b.layout.Partitions {
		b.index.Disk.Partitions = append(b.index.Disk.Partitions, artifact.Partition(p))
	}
	b.index.Files = append(b.index.Files,
		artifact.File{Name: b.rawName(), Role: artifact.RoleDiskRaw, Size: b.layout.Size, Digest: rawSum},
		artifact.File{Name: b.zstdName(), Role: artifact.RoleDiskZstd, Size: b.index.Disk.PackedSize(), Digest: packedSum})
	return nil
}
