package boot

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/disklayout"
)

// mount is what findmnt says about a path, field by field.
func (m *machine) mount(t *testing.T, path, field string) string {
	t.Helper()
	return strings.TrimSpace(m.run(t, fmt.Sprintf("findmnt --first-only -no %s %s", field, path)))
}

func checkRoot(t *testing.T, n *machine) {
	if got := n.mount(t, "/", "FSTYPE"); got != "squashfs" {
		t.Errorf("root is %s", got)
	}
	source := n.mount(t, "/", "SOURCE")
	if !strings.HasPrefix(source, "/dev/dm-") && !strings.HasPrefix(source, "/dev/mapper/") {
		t.Errorf("root is mounted from %s, not through dm-verity", source)
	}
	if got := n.run(t, "cat /proc/cmdline"); !strings.Contains(got, "slipway.roothash="+n.lab.index.Slot.RootHash) {
		t.Errorf("the kernel command line has another root hash than the index: %s", got)
	}
	for _, path := range []string{"/usr", "/usr/bin", "/boot"} {
		if out := n.try("sudo touch " + path + "/planted"); !strings.Contains(out, "Read-only file system") {
			t.Errorf("writing to %s: %s", path, out)
		}
	}
	if got := n.mount(t, "/etc", "FSTYPE"); got != "overlay" {
		t.Errorf("/etc is %s", got)
	}
	if got := strings.TrimSpace(n.run(t, "uname -r")); got != n.lab.index.Slot.Kernel {
		t.Errorf("kernel %s, the index says %s", got, n.lab.index.Slot.Kernel)
	}
}

// checkState wants one ext4 for everything that persists, on a partition that
// nodeinit has made to fill the disk.
func checkState(t *testing.T, n *machine) {
	for _, path := range []string{"/var", "/home", "/root", "/opt", "/etc/rancher", "/etc/slipway"} {
		if got := n.mount(t, path, "FSTYPE"); got != "ext4" {
			t.Errorf("%s is %s", path, got)
		}
	}
	source := strings.TrimSpace(n.run(t, "findmnt --first-only -no SOURCE /var | cut -d'[' -f1"))
	if got := strings.TrimSpace(n.run(t, "lsblk -no PARTLABEL "+source)); got != disklayout.NameState {
		t.Errorf("/var is on partition %q, want %s", got, disklayout.NameState)
	}
	want := diskSize - n.lab.index.Disk.Size
	var partition, files int64
	fmt.Sscan(n.run(t, "lsblk -bno SIZE "+source), &partition)
	fmt.Sscan(n.run(t, "df -B1 --output=size /var | tail -1"), &files)
	if partition < want-2*disklayout.Alignment {
		t.Errorf("state partition has %d bytes, the disk leaves %d", partition, want)
	}
	if files < partition*9/10 {
		t.Errorf("state file system shows %d bytes, its partition has %d", files, partition)
	}
}

// checkSeed has cloud-init judge the documents that it was given, and those of
// the other nodes.
func checkSeed(t *testing.T, n *machine) {
	n.judge(t, "--system")
	for _, f := range n.lab.index.Files {
		kind := map[string]string{"user-data": "cloud-config", "vendor-data": "cloud-config", "network-config": "network-config"}[filepath.Base(f.Name)]
		if f.Role != artifact.RoleSeed || f.Node == n.lab.node.Name || kind == "" {
			continue // meta-data has no schema
		}
		copied := "/tmp/" + strings.ReplaceAll(f.Name, "/", "-")
		if err := n.shell.Put(t.Context(), copied, read(t, filepath.Join(filepath.Dir(n.lab.image), f.Name))); err != nil {
			t.Fatal(err)
		}
		n.judge(t, "--schema-type "+kind+" --config-file "+copied)
	}
}

// judge runs cloud-init's own check, which must find everything valid and
// nothing that a later version will no longer take.
func (m *machine) judge(t *testing.T, args string) {
	t.Helper()
	out := m.run(t, "sudo cloud-init schema "+args+" 2>&1")
	if low := strings.ToLower(out); strings.Contains(low, "invalid") || strings.Contains(low, "deprecat") || !strings.Contains(low, "valid") {
		t.Errorf("cloud-init schema %s: %s", args, out)
	}
}
