package repro

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/hosttool"
)

// reader is a build under the eyes of programs that had no part in it.
type reader struct {
	dir   string
	index artifact.Index
	tmp   string
}

// tool runs a program of the host that must find nothing to say against a file.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: name, Args: args})
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (r reader) file(t *testing.T, role artifact.Role) string {
	t.Helper()
	for _, f := range r.index.Files {
		if f.Role == role {
			return filepath.Join(r.dir, f.Name)
		}
	}
	t.Fatalf("the build has no file of role %s", role)
	return ""
}

// partition copies a partition of the raw image into a file.
func (r reader) partition(t *testing.T, name string) string {
	t.Helper()
	p, ok := r.index.Disk.Partition(name)
	if !ok {
		t.Fatalf("the index names no partition %s", name)
	}
	path := filepath.Join(r.tmp, name)
	tool(t, "dd", "if="+r.file(t, artifact.RoleDiskRaw), "of="+path, "bs=1M", "conv=sparse", "status=none",
		"iflag=skip_bytes,count_bytes", fmt.Sprintf("skip=%d", p.Offset), fmt.Sprintf("count=%d", p.Size))
	return path
}

// readByOthers has every output read by foreign programs.
func readByOthers(t *testing.T, w *workshop) {
	dir := w.path("out", "lab")
	r := reader{dir: dir, index: readIndex(t, dir), tmp: t.TempDir()}
	r.readDisk(t)
	r.readPartitions(t)
	r.readOthers(t, w)
}

func (r reader) readDisk(t *testing.T) {
	raw, qcow2, packed := r.file(t, artifact.RoleDiskRaw), r.file(t, artifact.RoleDiskQcow2), r.file(t, artifact.RoleDiskZstd)
	if got := tool(t, "sgdisk", "-v", raw); !strings.Contains(got, "No problems found") {
		t.Errorf("sgdisk -v: %s", got)
	}
	tool(t, "qemu-img", "check", "-q", qcow2)
	tool(t, "qemu-img", "compare", "-q", "-f", "raw", "-F", "qcow2", raw, qcow2)
	tool(t, "zstd", "-q", "-t", packed)
	unpacked := filepath.Join(r.tmp, "unpacked")
	tool(t, "zstd", "-q", "-d", "--sparse", "-o", unpacked, packed)
	tool(t, "cmp", raw, unpacked)
	must(t, os.Remove(unpacked))
}

func (r reader) readPartitions(t *testing.T) {
	for _, name := range []string{disklayout.NameESP, disklayout.NameSeed} {
		tool(t, "fsck.vfat", "-n", r.partition(t, name))
	}
	slot := r.partition(t, disklayout.NameSlotA)
	tool(t, "unsquashfs", "-s", slot)
	// Reads and unpacks every file of the slot, and throws it away.
	tool(t, "unsquashfs", "-q", "-n", "-pf", "/dev/null", slot)
	// The superblock of the hash tree follows the data.
	offset := fmt.Sprintf("--hash-offset=%d", r.index.Slot.Squashfs)
	tool(t, "veritysetup", "verify", offset, slot, slot, r.index.Slot.RootHash)
}

func (r reader) readOthers(t *testing.T, w *workshop) {
	tool(t, "zstd", "-q", "-t", "--no-progress", r.file(t, artifact.RoleInitrd))
	public, err := os.ReadFile(w.path("key.pub"))
	must(t, err)
	key, err := artifact.ParseKey(public)
	must(t, err)
	line, err := artifact.AllowedSigner("slipway", key)
	must(t, err)
	signers := filepath.Join(r.tmp, "allowed_signers")
	must(t, os.WriteFile(signers, []byte(line), 0o644))
	index, err := os.Open(filepath.Join(r.dir, artifact.IndexName))
	must(t, err)
	defer index.Close()
	if err := hosttool.Run(t.Context(), hosttool.Cmd{Name: "ssh-keygen", Stdin: index, Args: []string{
		"-Y", "verify", "-f", signers, "-I", "slipway", "-n", artifact.Namespace, "-s", filepath.Join(r.dir, artifact.SignatureName)}}); err != nil {
		t.Error(err)
	}
}
