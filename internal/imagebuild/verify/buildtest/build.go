// Package buildtest makes a small but complete build with the real tools, for the
// tests of those who check, compare and write builds: squashfs and verity tree,
// FAT partitions, GPT, qcow2, compressed chunks, documents, index and signature.
// It boots nothing.
package buildtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/imagebuild/chunk"
	"github.com/slipway/slipway/internal/imagebuild/diskimage"
	"github.com/slipway/slipway/internal/imagebuild/provenance"
	"github.com/slipway/slipway/internal/imagebuild/sbom"
	"github.com/slipway/slipway/internal/plan"
	"github.com/slipway/slipway/internal/progress"
)

// Epoch is the time of every synthetic build, seconds.
const Epoch = 1700000000

// Spec says what is in the build. Content is keyed by path.
type Spec struct {
	Root   map[string]string // of the slot
	ESP    map[string]string
	Initrd map[string]string
	Seed   map[string]string // of node n1, and of the CIDATA partition

	Environment, Cluster, Substrate string // of the profile
}

// Default is a Spec with a little of everything.
func Default() Spec {
	return Spec{
		Root:   map[string]string{"etc/os-release": "ID=debian\n", "usr/bin/tool": strings.Repeat("\x7fELF tool ", 5000), "usr/lib/big": noise(600 << 10)},
		ESP:    map[string]string{"EFI/BOOT/BOOTX64.EFI": "MZ loader", "loader/entries/slot-a+3.conf": "title a\n"},
		Initrd: map[string]string{"init": "nodeinit", "lib/modules/virtio.ko": "module"},
		Seed:   map[string]string{"meta-data": "instance-id: n1\n", "user-data": "#cloud-config\nhostname: n1\n", "network-config": "version: 2\n"},

		Environment: "test", Cluster: "test", Substrate: "vm",
	}
}

// noise is n bytes that do not compress, the same at every call.
func noise(n int) string {
	b := make([]byte, 0, n+sha256.Size)
	for sum := sha256.Sum256([]byte("noise")); len(b) < n; sum = sha256.Sum256(sum[:]) {
		b = append(b, sum[:]...)
	}
	return string(b[:n])
}

// Key is the key that signs every synthetic build.
func Key() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
}

// PublicKey is its public half.
func PublicKey() ed25519.PublicKey { return Key().Public().(ed25519.PublicKey) }

// Build writes the build into dir, which must not exist or be empty.
func Build(ctx context.Context, dir string, spec Spec) error {
	b := &builder{ctx: ctx, dir: dir, spec: spec}
	for _, step := range []func() error{
		b.directories, b.slot, b.image, b.pack, b.qcow2, b.netboot, b.seeds, b.payload, b.plan, b.sbom, b.provenance, b.sign,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("synthetic build: %w", err)
		}
	}
	return os.RemoveAll(b.tmp)
}

type builder struct {
	ctx   context.Context
	dir   string
	tmp   string
	spec  Spec
	index artifact.Index
}

func (b *builder) path(name string) string { return filepath.Join(b.dir, name) }

func (b *builder) directories() error {
	for _, dir := range []string{"seeds/n1", "payload"} {
		if err := os.MkdirAll(b.path(dir), 0o755); err != nil {
			return err
		}
	}
	var err error
	b.tmp, err = os.MkdirTemp("", "buildtest-*")
	p := b.planValue()
	b.index = artifact.Index{
		Format: artifact.Format, Name: p.Name, Environment: p.Environment, Cluster: p.Cluster, Substrate: p.Substrate,
		Plan: p.Digest(), Epoch: Epoch,
	}
	return err
}

func (b *builder) planValue() plan.Plan {
	return plan.Plan{
		Format: plan.Format, Name: "slipway-" + b.spec.Environment, Environment: b.spec.Environment, Cluster: b.spec.Cluster,
		Substrate: b.spec.Substrate, Epoch: Epoch,
	}
}

// image puts the partitions together.
func (b *builder) image() error {
	slot := &b.index.Slot
	slot.Size = disklayout.SlotSize(slot.Content)
	layout, err := disklayout.New(b.index.Plan.String(), disklayout.MinESP, slot.Size)
	if err != nil {
		return err
	}
	raw := b.path("disk.raw")
	if err := diskimage.Create(raw, layout); err != nil {
		return err
	}
	esp, _ := layout.Find(disklayout.NameESP)
	seed, _ := layout.Find(disklayout.NameSeed)
	if err := b.fat(esp, "ESP", b.spec.ESP, raw); err != nil {
		return err
	}
	if err := b.fat(seed, "CIDATA", b.spec.Seed, raw); err != nil {
		return err
	}
	a, _ := layout.Find(disklayout.NameSlotA)
	if err := copyInto(raw, a.Offset, b.path("slot.squashfs")); err != nil {
		return err
	}
	b.index.Disk = artifact.Disk{Size: layout.Size, SectorSize: diskimage.SectorSize, GUID: layout.GUID, ChunkSize: chunk.Size}
	for _, p := range layout.Partitions {
		b.index.Disk.Partitions = append(b.index.Disk.Partitions, artifact.Partition(p))
	}
	return nil
}

func (b *builder) pack() error {
	raw, err := os.Open(b.path("disk.raw"))
	if err != nil {
		return err
	}
	defer raw.Close()
	out, err := os.Create(b.path("disk.raw.zst"))
	if err != nil {
		return err
	}
	defer out.Close()
	chunks, tree, packed, err := chunk.Pack(b.ctx, raw, out, progress.Nop{})
	if err != nil {
		return err
	}
	b.index.Disk.Chunks = chunks
	b.index.Files = append(b.index.Files,
		artifact.File{Name: "disk.raw", Role: artifact.RoleDiskRaw, Size: b.index.Disk.Size, Digest: tree},
		artifact.File{Name: "disk.raw.zst", Role: artifact.RoleDiskZstd, Size: b.index.Disk.PackedSize(), Digest: packed})
	return nil
}

func (b *builder) qcow2() error {
	if err := diskimage.Qcow2(b.ctx, b.path("disk.raw"), b.path("disk.qcow2")); err != nil {
		return err
	}
	return b.add("disk.qcow2", artifact.RoleDiskQcow2, "")
}

func (b *builder) netboot() error {
	if err := b.write("vmlinuz", []byte("MZ kernel"), artifact.RoleKernel, ""); err != nil {
		return err
	}
	data, err := initrd(b.spec.Initrd)
	if err != nil {
		return err
	}
	if err := b.write("initrd-install.zst", data, artifact.RoleInstaller, ""); err != nil {
		return err
	}
	return b.write("initrd.zst", data, artifact.RoleInitrd, "")
}

func (b *builder) seeds() error {
	for _, name := range sortedKeys(b.spec.Seed) {
		if err := b.write("seeds/n1/"+name, []byte(b.spec.Seed[name]), artifact.RoleSeed, "n1"); err != nil {
			return err
		}
	}
	return nil
}

// payload is a chart, a manifest and the list of container images.
func (b *builder) payload() error {
	var chart bytes.Buffer
	z := gzip.NewWriter(&chart)
	w := tar.NewWriter(z)
	text := "name: x\nversion: 1.0.0\n"
	err := w.WriteHeader(&tar.Header{Name: "x/Chart.yaml", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err := errors.Join(err, w.Close(), z.Close()); err != nil {
		return err
	}
	return errors.Join(
		b.write("payload/cilium.tgz", chart.Bytes(), artifact.RolePayload, ""),
		b.write("payload/flux.yaml", []byte("# Flux\n---\napiVersion: v1\nkind: Namespace\n"), artifact.RolePayload, ""),
		b.write("payload/images.txt", []byte("quay.io/x/y:v1\n"), artifact.RolePayload, ""))
}

func (b *builder) plan() error {
	data, err := b.planValue().Encode()
	if err != nil {
		return err
	}
	return b.write("plan.json", data, artifact.RolePlan, "")
}

func (b *builder) sbom() error {
	data, err := sbom.Encode(sbom.Inputs{Name: b.index.Name, Plan: b.index.Plan, Epoch: Epoch, Packages: []sbom.Package{{Name: "bash", Version: "5.2", Arch: "amd64"}}})
	if err != nil {
		return err
	}
	return b.write("sbom.cdx.json", data, artifact.RoleSBOM, "")
}

func (b *builder) provenance() error {
	b.sortFiles()
	data, err := provenance.Encode(provenance.Inputs{Files: b.index.Files, Plan: b.index.Plan, Epoch: Epoch, Version: "test"})
	if err != nil {
		return err
	}
	return b.write("provenance.json", data, artifact.RoleProvenance, "")
}

func (b *builder) sign() error {
	b.sortFiles()
	return Sign(b.dir, b.index)
}

func (b *builder) sortFiles() {
	slices.SortFunc(b.index.Files, func(x, y artifact.File) int { return strings.Compare(x.Name, y.Name) })
}

// Sign writes the index and its signature by Key into dir.
func Sign(dir string, x artifact.Index) error {
	data, err := artifact.Encode(x)
	if err != nil {
		return err
	}
	sig, err := artifact.Sign(data, Key())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, artifact.IndexName), data, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, artifact.SignatureName), sig, 0o644)
}

// Index reads the index of a build without checking the signature.
func Index(dir string) (artifact.Index, error) {
	data, err := os.ReadFile(filepath.Join(dir, artifact.IndexName))
	if err != nil {
		return artifact.Index{}, err
	}
	return artifact.Decode(data)
}

func (b *builder) write(name string, data []byte, role artifact.Role, node string) error {
	if err := os.WriteFile(b.path(name), data, 0o644); err != nil {
		return err
	}
	return b.add(name, role, node)
}

func (b *builder) add(name string, role artifact.Role, node string) error {
	f, err := os.Open(b.path(name))
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return err
	}
	b.index.Files = append(b.index.Files, artifact.File{Name: name, Role: role, Node: node, Size: n, Digest: digest.FromHash(h)})
	return nil
}
