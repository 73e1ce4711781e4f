package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/disklayout"
)

// Sizes of the plain image's partitions, in MiB.
const (
	plainESP  = 256
	plainRoot = 2048
)

// plainEntry starts the plain image. root= by PARTUUID, as systemd and Debian do.
const plainEntry = `title   Debian
linux   /vmlinuz
initrd  /initrd.img
options root=PARTUUID=%s rw %s
`

const plainRootGUID = "6d2c7b0e-3a51-4a7e-9f0e-5f3c1d2a4b6c"

// buildPlain makes the image that a boot is compared with: the same packages in
// an ext4, Debian's own initramfs, systemd-boot, and our seed partition.
func (y *yard) buildPlain(t *testing.T, o ours) string {
	t.Helper()
	ctx, tree, raw := t.Context(), y.path("plain"), y.path("plain.raw")
	args := []string{"--mode=root", "--variant=apt", "--quiet", "--include=" + strings.Join(append(y.packages, "initramfs-tools"), ","),
		y.cluster.Debian.Suite, tree, "deb [trusted=yes] copy:" + y.path("peer", "repo") + " " + y.cluster.Debian.Suite + " main"}
	must(t, run(ctx, "mmdebstrap", args...))
	must(t, os.WriteFile(filepath.Join(tree, "etc", "fstab"), []byte("PARTUUID="+plainRootGUID+" / ext4 defaults 0 1\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(tree, "etc", "machine-id"), nil, 0o444))
	root := y.path("plain.ext4")
	must(t, run(ctx, "mkfs.ext4", "-q", "-d", tree, root, fmt.Sprintf("%dM", plainRoot)))
	esp := y.fillPlainESP(t, tree)
	must(t, os.RemoveAll(tree))
	y.assemblePlain(t, o, raw, esp, root)
	return raw
}

// fillPlainESP makes the EFI system partition with loader, kernel and initramfs.
func (y *yard) fillPlainESP(t *testing.T, tree string) string {
	t.Helper()
	ctx, esp, entry := t.Context(), y.path("plain.esp"), y.path("debian.conf")
	text := fmt.Sprintf(plainEntry, plainRootGUID, strings.Join(y.consoles(), " "))
	must(t, os.WriteFile(entry, []byte(text), 0o644))
	must(t, run(ctx, "mkfs.vfat", "-C", "-F", "32", esp, fmt.Sprint(plainESP<<10)))
	must(t, run(ctx, "mmd", "-i", esp, "::/EFI", "::/EFI/BOOT", "::/loader", "::/loader/entries"))
	for from, to := range map[string]string{
		filepath.Join(tree, "usr/lib/systemd/boot/efi/systemd-bootx64.efi"): "EFI/BOOT/BOOTX64.EFI",
		only(t, filepath.Join(tree, "boot/vmlinuz-*")):                      "vmlinuz",
		only(t, filepath.Join(tree, "boot/initrd.img-*")):                   "initrd.img",
		entry: "loader/entries/debian.conf",
	} {
		must(t, run(ctx, "mcopy", "-i", esp, from, "::/"+to))
	}
	return esp
}

// assemblePlain puts the partitions together; the third is our own CIDATA.
func (y *yard) assemblePlain(t *testing.T, o ours, raw, esp, root string) {
	t.Helper()
	ctx := t.Context()
	seed, ok := o.index.Disk.Partition(disklayout.NameSeed)
	if !ok {
		t.Fatal("our image has no seed partition")
	}
	must(t, run(ctx, "truncate", "-s", fmt.Sprintf("%dM", 2+plainESP+plainRoot+seed.Size>>20), raw))
	must(t, run(ctx, "sgdisk", "-n", fmt.Sprintf("1:1M:+%dM", plainESP), "-t", "1:ef00",
		"-n", fmt.Sprintf("2:0:+%dM", plainRoot), "-u", "2:"+plainRootGUID,
		"-n", fmt.Sprintf("3:0:+%dM", seed.Size>>20), "-c", "3:CIDATA", raw))
	dd := func(in string, skip, seek, count int64) {
		t.Helper()
		must(t, run(ctx, "dd", "if="+in, "of="+raw, "bs=1M", "conv=notrunc,sparse", "status=none",
			fmt.Sprintf("skip=%d", skip), fmt.Sprintf("seek=%d", seek), fmt.Sprintf("count=%d", count)))
	}
	dd(esp, 0, 1, plainESP)
	dd(root, 0, 1+plainESP, plainRoot)
	dd(o.file(t, artifact.RoleDiskRaw), seed.Offset>>20, 1+plainESP+plainRoot, seed.Size>>20)
}

// only returns the one file that matches.
func only(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%s: want one file, found %q", pattern, found)
	}
	return found[0]
}
