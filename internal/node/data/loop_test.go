package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	told "github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/inventory/signature"
)

// loop is a block device over a file, which only root can make.
func loop(t *testing.T, size int64) (device, file string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("block devices need root")
	}
	file = filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", "--partscan", file).CombinedOutput()
	if err != nil {
		t.Skipf("no loop devices here: %v: %s", err, out)
	}
	device = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return device, file
}

// showPartition makes the kernel show the first partition once the table is there:
// some kernels read no GPT, and partx does it for them.
func showPartition(t *testing.T, device string) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		<-done
		exec.Command("partx", "--delete", device).Run()
	})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			if _, err := os.Stat(device + "p1"); err != nil {
				exec.Command("partx", "--add", device).Run()
			}
		}
	}()
}

// seen is the device as the inventory sees it, with a serial number.
func seen(t *testing.T, device, serial string, size int64) machine.Disk {
	t.Helper()
	f, err := os.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return machine.Disk{Name: filepath.Base(device), Serial: serial, Size: size, Sector: 512, Content: signature.Probe(f, size, 512)}
}

// A real disk: made, checked by e2fsck and blkid, and on the next run not a byte of
// it changes.
func TestRealDisk(t *testing.T) {
	const size = 300 << 20
	device, file := loop(t, size)
	n := newNode(t)
	n.World.Disks = func() []machine.Disk { return []machine.Disk{seen(t, device, "A7", size)} }
	n.World.Partition = partition
	showPartition(t, device)
	n.World.Format = func(ctx context.Context, device, uuid string) error {
		return run(ctx, "mkfs.ext4", "-q", "-F", "-L", "slipway-data", "-U", uuid, device)
	}
	got, err := n.Make(t.Context(), wanted("A7"))
	if err != nil {
		t.Fatal(err)
	}
	exec.Command("sync").Run()
	if out, err := exec.Command("e2fsck", "-fn", device+"p1").CombinedOutput(); err != nil {
		t.Errorf("e2fsck: %v\n%s", err, out)
	}
	out, err := exec.Command("blkid", "--probe", "--output", "value", "--match-tag", "UUID", device+"p1").CombinedOutput()
	if strings.TrimSpace(string(out)) != got.Mounts[0].UUID {
		t.Errorf("blkid says %s (%v), we %s", out, err, got.Mounts[0].UUID)
	}
	before := sum(t, file)
	n.World.Partition = func(machine.Disk) (string, error) { t.Error("a disk with data was laid out anew"); return "", nil }
	again, err := n.Make(t.Context(), wanted("A7"))
	if err != nil || again.Mounts[0] != got.Mounts[0] {
		t.Errorf("%+v, %v", again, err)
	}
	if err := os.Remove(filepath.Join(n.Root, told.DataPath)); err != nil {
		t.Fatal(err)
	}
	if again, err = n.Make(t.Context(), wanted("A7")); err != nil || again.Mounts[0].UUID != got.Mounts[0].UUID || again.Mounts[0].Made {
		t.Errorf("after the system was installed anew: %+v, %v", again, err)
	}
	if !bytes.Equal(sum(t, file), before) {
		t.Error("the disk was written")
	}
}

func sum(t *testing.T, file string) []byte {
	t.Helper()
	exec.Command("sync").Run()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return h.Sum(nil)
}

// Longhorn's own disk that is not ours by name is not touched either.
func TestForeignRealDisk(t *testing.T) {
	const size = 100 << 20
	device, file := loop(t, size)
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", device).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before := sum(t, file)
	n := newNode(t)
	n.World.Disks = func() []machine.Disk { return []machine.Disk{seen(t, device, "A7", size)} }
	n.World.Partition = partition
	if _, err := n.Make(t.Context(), told.Wanted{Format: told.DataFormat, Disks: []told.WantedDisk{{Name: "a", Disk: cluster.Selector{Serial: "A7"}, Path: "/var/a"}}}); err == nil {
		t.Error("a foreign disk was taken")
	}
	if !bytes.Equal(sum(t, file), before) {
		t.Error("a foreign disk was written")
	}
}
