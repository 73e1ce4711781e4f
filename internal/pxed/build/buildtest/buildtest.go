// Package buildtest makes small signed builds for the tests of pxed.
package buildtest

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/progress"
	"github.com/slipway/slipway/internal/pxed/build"
)

// Key is the key that signs the builds; it is nobody's.
func Key() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
}

// Public is the public half of Key.
func Public() ed25519.PublicKey { return Key().Public().(ed25519.PublicKey) }

// Contents are the files of a build, by name: a machine can start none of them.
func Contents() map[string][]byte {
	return map[string][]byte{
		"netboot/vmlinuz":            bytes.Repeat([]byte("kernel\n"), 40_000),
		"netboot/initrd-install.zst": bytes.Repeat([]byte("installer\n"), 20_000),
		"netboot/ipxe/ipxe.efi":      []byte("MZ ipxe.efi"),
		"netboot/ipxe/snponly.efi":   []byte("MZ snponly.efi"),
		"netboot/ipxe/undionly.kpxe": []byte("undionly"),
		"seeds/n1/user-data":         []byte("#cloud-config\n"),
		"slipway-lab.raw.zst":        bytes.Repeat([]byte{0xfd}, 150),
	}
}

func roleOf(name string) artifact.Role {
	switch {
	case name == "netboot/vmlinuz":
		return artifact.RoleKernel
	case name == "netboot/initrd-install.zst":
		return artifact.RoleInstaller
	case strings.HasPrefix(name, "netboot/ipxe/"):
		return artifact.RoleIPXE
	case strings.HasPrefix(name, "seeds/"):
		return artifact.RoleSeed
	default:
		return artifact.RoleDiskZstd
	}
}

// Index describes files as a build, with a disk image of two chunks and a hole.
func Index(files map[string][]byte) artifact.Index {
	const guid = "00000000-0000-8000-8000-00000000000"
	x := artifact.Index{
		Format: artifact.Format, Name: "slipway-lab", Environment: "lab", Cluster: "harbor", Substrate: "vm",
		Plan: digest.Of([]byte("plan")), Epoch: 1700000000,
		Disk: artifact.Disk{
			Size: 10 << 20, SectorSize: 512, GUID: guid + "0", ChunkSize: 4 << 20,
			Partitions: []artifact.Partition{{Number: 1, Name: "slipway-a", Type: "0FC63DAF-8483-4772-8E79-3D69D8477DE4", GUID: guid + "2", Offset: 3 << 20, Size: 4 << 20}},
			Chunks: []artifact.Chunk{
				{Raw: digest.Of([]byte("a")), Offset: 0, Size: 100, Packed: digest.Of([]byte("pa"))},
				{Hole: true, Offset: 100, Size: 20, Packed: digest.Of([]byte("pb"))},
				{Raw: digest.Of([]byte("c")), Offset: 120, Size: 30, Packed: digest.Of([]byte("pc"))},
			},
		},
		Slot: artifact.Slot{Size: 4 << 20, Content: 12288, Squashfs: 8192, Digest: digest.Of([]byte("slot")), RootHash: strings.Repeat("ab", 32), Kernel: "6.12.117-cloud-amd64"},
	}
	for name, data := range files {
		f := artifact.File{Name: name, Role: roleOf(name), Size: int64(len(data)), Digest: digest.Of(data)}
		if f.Role == artifact.RoleSeed {
			f.Node = "n1"
		}
		x.Files = append(x.Files, f)
	}
	slices.SortFunc(x.Files, func(a, b artifact.File) int { return strings.Compare(a.Name, b.Name) })
	return x
}

// Write writes files and their signed index into a new directory.
func Write(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	index, err := artifact.Encode(Index(files))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := artifact.Sign(index, Key())
	if err != nil {
		t.Fatal(err)
	}
	Put(t, dir, artifact.IndexName, index)
	Put(t, dir, artifact.SignatureName, signature)
	for name, data := range files {
		Put(t, dir, name, data)
	}
	return dir
}

// Put writes one file below dir.
func Put(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Open opens the build that Write made of files.
func Open(t testing.TB, files map[string][]byte) *build.Build {
	t.Helper()
	b, err := build.Open(t.Context(), Write(t, files), Public(), progress.Nop{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}
