package kmod

import (
	"slices"
	"testing"
)

func TestAliases(t *testing.T) {
	module := []byte("\x7fELF...\x00license=GPL\x00alias=pci:v00008086d*sv*sd*bc01sc06i01*\x00alias=fs-ext4\x00alias=virtio:d00000008v*\x00depends=x\x00")
	want := []string{"pci:v00008086d*sv*sd*bc01sc06i01*", "virtio:d00000008v*"}
	got := Aliases(module)
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for device, matched := range map[string]bool{
		"pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01": true,
		"pci:v00008086d00002922sv00001AF4sd00001100bc02sc00i00": false,
		"virtio:d00000008v00001AF4":                             true,
		"virtio:d00000002v00001AF4":                             false,
		"":                                                      false,
	} {
		if matches(got, device) != matched {
			t.Errorf("%q matches: %v", device, !matched)
		}
	}
}

func TestModuleFiles(t *testing.T) {
	deps := "kernel/drivers/md/dm-verity.ko: kernel/drivers/md/dm-mod.ko\nkernel/fs/fat/vfat.ko.xz:\n"
	files := moduleFiles(deps)
	if len(files) != 2 || moduleName(files[0]) != "dm_verity" || moduleName(files[1]) != "vfat" {
		t.Errorf("got %v", files)
	}
	l := Loader{files: files}
	if !l.has("dm-verity") || !l.has("dm_verity") || l.has("dm") {
		t.Error("dashes and underscores are not the same")
	}
}

func TestSoftDeps(t *testing.T) {
	got := softDeps("softdep ext4 pre: crc32c_intel crc32c_generic\nsoftdep x\n\n")
	if len(got) != 1 || !slices.Equal(got["ext4"], []string{"crc32c_intel", "crc32c_generic"}) {
		t.Errorf("%v", got)
	}
}

func TestAlways(t *testing.T) {
	real := Always("model name\t: Intel(R) N100\n")
	sha, verity := slices.Index(real, "sha256_ssse3"), slices.Index(real, "dm-verity")
	if sha < 0 || verity < sha {
		t.Errorf("verity does not find the fast SHA-256: %v", real)
	}
	if emulated := Always("model name\t: QEMU TCG CPU version 2.5+\n"); slices.Contains(emulated, "sha256_ssse3") {
		t.Errorf("an emulator gets vector instructions: %v", emulated)
	}
}
