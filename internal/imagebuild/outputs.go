package imagebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/imagebuild/provenance"
	"github.com/slipway/slipway/internal/imagebuild/sbom"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/plan"
)

// fetch brings every pinned input of the plan into the cache.
func (b *builder) fetch(ctx context.Context) error {
	f := fetch.Fetcher{
		Cache: b.Cache, Profile: b.request.Profile, Dir: filepath.Dir(b.request.Profile), Report: b.Progress,
		Archives: func(ctx context.Context) (map[string]string, error) {
			m, err := aptresolve.FindMirrors(ctx, b.Cluster.Debian.Mirror, b.Getenv)
			if err != nil {
				return nil, err
			}
			return map[string]string{pin.ArchiveDebian: m.Debian, pin.ArchiveSecurity: m.Security}, nil
		},
	}
	if _, err := f.Sets(ctx, b.Lock, pin.SetRootfs, pin.SetKernel, pin.SetNetboot); err != nil {
		return err
	}
	var names []string
	for _, in := range b.Plan.Payload.Inputs {
		names = append(names, in.Name)
	}
	_, err := f.Artifacts(ctx, b.Lock, names...)
	return err
}

// addFiles adds everything that is not the disk.
func (b *builder) addFiles(ctx context.Context) error {
	copies := []struct {
		src, name string
		role      artifact.Role
	}{
		{b.tree.VMLinuz(), "netboot/vmlinuz", artifact.RoleKernel},
		{b.paths.initrd, "netboot/initrd.zst", artifact.RoleInitrd},
		{b.paths.installer, "netboot/initrd-install.zst", artifact.RoleInstaller},
		{filepath.Join(b.paths.boot, bootUndionly), "netboot/ipxe/" + bootUndionly, artifact.RoleIPXE},
		{filepath.Join(b.paths.boot, bootIPXE), "netboot/ipxe/" + bootIPXE, artifact.RoleIPXE},
		{filepath.Join(b.paths.boot, bootSNPOnly), "netboot/ipxe/" + bootSNPOnly, artifact.RoleIPXE},
	}
	for _, c := range copies {
		if err := errors.Join(copyFile(c.src, b.path(c.name)), b.enter(c.name, c.role, "")); err != nil {
			return fmt.Errorf("adding %s: %w", c.name, err)
		}
	}
	if err := b.enter(b.qcow2Name(), artifact.RoleDiskQcow2, ""); err != nil {
		return err
	}
	for _, s := range b.seeds {
		for e := range s.tree.All() {
			if err := b.add(path.Join("seeds", s.node, e.Path), artifact.RoleSeed, s.node, e.Content); err != nil {
				return err
			}
		}
	}
	if err := b.addPayload(); err != nil {
		return err
	}
	return b.addDocuments(ctx)
}

// addDocuments adds what is said about the build. The provenance comes last: it
// names all the others.
func (b *builder) addDocuments(ctx context.Context) error {
	text, err := b.Plan.Encode()
	if err != nil {
		return err
	}
	bill, err := b.billOfMaterials()
	if err != nil {
		return err
	}
	if err := errors.Join(b.add("plan.json", artifact.RolePlan, "", text), b.add("sbom.cdx.json", artifact.RoleSBOM, "", bill)); err != nil {
		return err
	}
	statement, err := b.provenance(ctx)
	if err != nil {
		return err
	}
	return b.add("provenance.json", artifact.RoleProvenance, "", statement)
}

func (b *builder) billOfMaterials() ([]byte, error) {
	in := sbom.Inputs{
		Name: b.Plan.Name, Suite: b.Plan.Rootfs.Suite, Plan: b.Plan.Digest(), Epoch: b.Plan.Epoch,
		Binaries: []sbom.Binary{{Name: "nodeinit", Path: b.nodeinit}},
	}
	for _, d := range b.debs() {
		in.Packages = append(in.Packages, sbomPackage(d))
	}
	for _, i := range b.Plan.Payload.Inputs {
		in.Files = append(in.Files, sbom.File{Name: i.Name, Version: i.Version, URL: b.origin(i.Name), Digest: i.Digest})
	}
	return sbom.Encode(in)
}

// origin is the package URL of an input of the payload, or where it was fetched from;
// "" for a file of this machine.
func (b *builder) origin(name string) string {
	a := b.Lock.Artifact(name)
	switch {
	case a == nil || a.Kind == pin.KindFile:
		return ""
	case a.Kind == pin.KindGoModule:
		return "pkg:golang/" + a.Source + "#" + a.Subdir
	case a.Kind == pin.KindImage:
		return "docker://" + a.Source
	default:
		return a.Source
	}
}

// debs are all Debian packages that the outputs hold something of.
func (b *builder) debs() []plan.Deb {
	return append(slices.Clone(b.Plan.Rootfs.Packages), b.Plan.Kernel.Package, b.Plan.IPXE)
}

func sbomPackage(d plan.Deb) sbom.Package {
	return sbom.Package{Name: d.Name, Version: d.Version, Arch: d.Arch, Digest: d.Digest}
}

func (b *builder) provenance(ctx context.Context) ([]byte, error) {
	hostTools, err := provenance.HostTools(ctx, "mmdebstrap", "mksquashfs", "veritysetup", "mkfs.vfat", "mcopy", "qemu-img", "depmod")
	if err != nil {
		return nil, err
	}
	in := provenance.Inputs{Files: b.index.Files, Plan: b.Plan.Digest(), Epoch: b.Plan.Epoch, Version: b.Version, Tools: hostTools}
	for _, name := range []string{b.request.Profile, b.request.Lock} {
		sum, err := fileDigest(name)
		if err != nil {
			return nil, err
		}
		in.Profile = append(in.Profile, provenance.Source{Name: filepath.Base(name), Digest: sum})
	}
	for _, d := range b.debs() {
		in.Pins = append(in.Pins, provenance.Pin{Name: d.Name, URI: sbomPackage(d).URL(b.Plan.Rootfs.Suite), Digest: d.Digest})
	}
	for _, i := range b.Plan.Payload.Inputs {
		in.Pins = append(in.Pins, provenance.Pin{Name: i.Name, URI: b.origin(i.Name), Digest: i.Digest})
	}
	return provenance.Encode(in)
}

// add writes a small file and enters it into the index.
func (b *builder) add(name string, role artifact.Role, node string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		return err
	}
	err := writeFile(b.path(name), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if err != nil {
		return fmt.Errorf("adding %s: %w", name, err)
	}
	b.index.Files = append(b.index.Files, artifact.File{Name: name, Role: role, Node: node, Size: int64(len(content)), Digest: digest.Of(content)})
	return nil
}

// enter enters a file that is already there into the index.
func (b *builder) enter(name string, role artifact.Role, node string) error {
	st, err := os.Stat(b.path(name))
	if err != nil {
		return err
	}
	sum, err := fileDigest(b.path(name))
	if err != nil {
		return err
	}
	b.index.Files = append(b.index.Files, artifact.File{Name: name, Role: role, Node: node, Size: st.Size(), Digest: sum})
	return nil
}

// sign completes the index, checks it as every reader will, and signs it.
func (b *builder) sign(context.Context) error {
	x := &b.index
	x.Format, x.Name, x.Environment, x.Cluster = artifact.Format, b.Plan.Name, b.Plan.Environment, b.Plan.Cluster
	x.Substrate, x.Plan, x.Epoch = b.Plan.Substrate, b.Plan.Digest(), b.Plan.Epoch
	slot, err := b.partition(disklayout.NameSlotA)
	if err != nil {
		return err
	}
	x.Slot = artifact.Slot{
		Size: slot.Size, Content: b.slot.Content, Squashfs: b.slot.Squashfs,
		Digest: b.slot.Digest, RootHash: b.slot.RootHash, Kernel: b.tree.Release,
	}
	slices.SortFunc(x.Files, func(a, c artifact.File) int { return cmp.Compare(a.Name, c.Name) })
	text, err := artifact.Encode(*x)
	if err != nil {
		return err
	}
	signature, err := artifact.Sign(text, b.Key.Private)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{artifact.IndexName: text, artifact.SignatureName: signature} {
		if err := os.WriteFile(b.path(name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
