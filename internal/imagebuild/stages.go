package imagebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway/slipway/images"
	"github.com/slipway/slipway/internal/debfile"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/imagebuild/initrd"
	"github.com/slipway/slipway/internal/imagebuild/kernel"
	"github.com/slipway/slipway/internal/imagebuild/rootfs"
	"github.com/slipway/slipway/internal/imagebuild/squash"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/plan"
)

// NodePath is where the nodeinit binary lies in the root file system, as the
// command of the node.
const NodePath = "usr/bin/slipway-node"

// makeRootfs installs the packages; the result is kept as a compressed tar.
func (b *builder) makeRootfs(ctx context.Context) error {
	dir, err := b.stage(ctx, "installing packages", "rootfs", b.Plan.RootfsKey(), func(dir string) error {
		req := rootfs.Request{Suite: b.Plan.Rootfs.Suite, Epoch: b.Plan.Epoch}
		for _, p := range b.Plan.Rootfs.Packages {
			req.Packages = append(req.Packages, rootfs.Package{Name: p.Name, Version: p.Version, Arch: p.Arch, File: b.Cache.Path(p.Digest)})
		}
		return writeZstd(filepath.Join(dir, "rootfs.tar.zst"), func(w io.Writer) error { return rootfs.Build(ctx, req, w) })
	})
	b.paths.rootfs = filepath.Join(dir, "rootfs.tar.zst")
	return err
}

// makeKernel unpacks the kernel package and makes the initramfs for it.
func (b *builder) makeKernel(ctx context.Context) error {
	dir, err := b.stage(ctx, "unpacking the kernel", "kernel", b.Plan.KernelKey(), func(dir string) error {
		_, err := kernel.Unpack(ctx, b.Cache.Path(b.Plan.Kernel.Package.Digest), dir)
		return err
	})
	if err != nil {
		return err
	}
	if b.tree, err = kernel.Open(dir); err != nil {
		return err
	}
	dir, err = b.stage(ctx, "making the initramfs", "initrd", b.Plan.InitrdKey(), func(dir string) error {
		return writeFile(filepath.Join(dir, "initrd.zst"), func(w io.Writer) error {
			return initrd.Build(initrd.Request{Init: b.nodeinit, Modules: b.tree.Modules(), Wanted: b.Plan.Kernel.Modules}, w)
		})
	})
	b.paths.initrd = filepath.Join(dir, "initrd.zst")
	if err != nil {
		return err
	}
	return b.makeInstaller(ctx)
}

// makeInstaller makes the initramfs that images a machine: the node's own with
// network drivers and their firmware.
func (b *builder) makeInstaller(ctx context.Context) error {
	dir, err := b.stage(ctx, "making the installer", "installer", b.Plan.InstallerKey(), func(dir string) error {
		files := filepath.Join(dir, "files")
		if err := b.extractFirmware(ctx, files); err != nil {
			return err
		}
		req := initrd.Request{
			Init: b.nodeinit, Modules: b.tree.Modules(), Files: files,
			Wanted: slices.Concat(b.Plan.Kernel.Modules, b.Plan.Kernel.Install.Modules),
		}
		return writeFile(filepath.Join(dir, "initrd.zst"), func(w io.Writer) error { return initrd.Build(req, w) })
	})
	b.paths.installer = filepath.Join(dir, "initrd.zst")
	return err
}

func (b *builder) extractFirmware(ctx context.Context, dir string) error {
	firmware, err := images.InstallFirmware(b.Plan.Substrate)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, f := range firmware {
		pkg, err := b.deb(f.Package)
		if err != nil {
			return err
		}
		err = debfile.Walk(ctx, b.Cache.Path(pkg.Digest), func(name string, content io.Reader) error {
			if !strings.HasPrefix(name, f.Dir+"/") {
				return nil
			}
			return debfile.Write(filepath.Join(dir, strings.TrimPrefix(name, "usr/")), content)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Names of the boot files in their stage.
const (
	bootSystemd  = "systemd-bootx64.efi"
	bootUndionly = "undionly.kpxe"
	bootIPXE     = "ipxe.efi"
	bootSNPOnly  = "snponly.efi"
)

// makeBootFiles takes the boot loaders out of their packages.
func (b *builder) makeBootFiles(ctx context.Context) error {
	loader, err := b.deb("systemd-boot-efi")
	if err != nil {
		return err
	}
	key := digest.Of([]byte("boot/1 " + loader.Digest.Hex() + " " + b.Plan.IPXE.Digest.Hex()))
	b.paths.boot, err = b.stage(ctx, "taking out the boot loaders", "boot", key, func(dir string) error {
		err := debfile.Extract(ctx, b.Cache.Path(loader.Digest), map[string]string{
			"usr/lib/systemd/boot/efi/systemd-bootx64.efi": filepath.Join(dir, bootSystemd),
		})
		return errors.Join(err, debfile.Extract(ctx, b.Cache.Path(b.Plan.IPXE.Digest), map[string]string{
			"usr/lib/ipxe/undionly.kpxe":  filepath.Join(dir, bootUndionly),
			"usr/lib/ipxe/ipxe-amd64.efi": filepath.Join(dir, bootIPXE),
			"usr/lib/ipxe/snponly.efi":    filepath.Join(dir, bootSNPOnly),
		}))
	})
	return err
}

func (b *builder) deb(name string) (plan.Deb, error) {
	for _, p := range b.Plan.Rootfs.Packages {
		if p.Name == name {
			return p, nil
		}
	}
	return plan.Deb{}, fmt.Errorf("package %s is not in the %s set of the lock", name, pin.SetRootfs)
}

// Names in the stage of a slot.
const (
	slotImage = "slot.img"
	slotFacts = "slot.json"
)

// makeSlot merges packages, kernel modules, the overlay, the node's own program and
// the payload into the content of a slot.
func (b *builder) makeSlot(ctx context.Context) error {
	key := b.Plan.SlotKey()
	dir, err := b.stage(ctx, "making the slot", "slot", key, func(dir string) error {
		slot, err := squash.Build(ctx, squash.Request{
			Path: filepath.Join(dir, slotImage), Level: b.Plan.Rootfs.Level, Epoch: b.Plan.Epoch,
			UUID: disklayout.GUID(key.Hex(), "verity"), Salt: key,
		}, b.writeTree)
		if err != nil {
			return err
		}
		facts, err := json.Marshal(slot)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, slotFacts), facts, 0o644)
	})
	if err != nil {
		return err
	}
	b.paths.slot = filepath.Join(dir, slotImage)
	facts, err := os.ReadFile(filepath.Join(dir, slotFacts))
	if err != nil {
		return err
	}
	return json.Unmarshal(facts, &b.slot)
}

// writeTree writes the root file system as one tar stream.
func (b *builder) writeTree(w io.Writer) error {
	f, err := os.Open(b.paths.rootfs)
	if err != nil {
		return err
	}
	defer f.Close()
	base, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer base.Close()
	drop, err := rootfs.NewDropper(b.Plan.Rootfs.Drop)
	if err != nil {
		return err
	}
	epoch := b.Plan.Epoch
	payload, err := b.payloadLayers()
	if err != nil {
		for _, l := range payload {
			l.Close()
		}
		return err
	}
	return rootfs.Merge(w, base, epoch, drop.Drop, rootfs.Paths(b.overlay), append([]io.ReadCloser{
		rootfs.DirLayer(b.tree.Modules(), kernel.ModulesDir+"/"+b.tree.Release, epoch),
		rootfs.TreeLayer(b.overlay, epoch),
		rootfs.FileLayer(b.nodeinit, NodePath, 0o755, epoch)}, payload...)...)
}
