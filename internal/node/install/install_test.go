package install_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact/gpt"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

func TestInstall(t *testing.T) {
	r := newRig(t)
	result := r.run()
	if result.Err != nil || !result.Acknowledged {
		t.Fatalf("%+v\n%s", result, r.screen.text())
	}
	r.installed()
	receipts := r.server.Receipts()
	if len(receipts) != 1 {
		t.Fatalf("receipts %+v", receipts)
	}
	c := receipts[0]
	if !c.ReadBack || !c.Written || c.Error != "" || c.Node != "n1" || c.Disk.Serial != "SYS-1" || c.Index != r.server.Ticket.Index || c.Seed.IsZero() || c.Finished.Before(c.Started) {
		t.Errorf("receipt %+v", c)
	}
	table := readTable(t, r.path())
	if table.GUID != c.DiskGUID {
		t.Errorf("the disk has GUID %s, the receipt says %s", table.GUID, c.DiskGUID)
	}
	if again := newRig(t); again.run().Err != nil || readTable(t, again.path()).GUID == table.GUID {
		t.Error("two disks with one GUID")
	}
}

func readTable(t *testing.T, path string) gpt.Table {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := gpt.Read(f, 512, 1)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// Whom the node shall tell lies beside the seed, and is no part of its digest.
func TestHome(t *testing.T) {
	with, without := newRig(t), newRig(t)
	with.home = "http://10.0.0.1:8080"
	if a, b := with.run(), without.run(); a.Err != nil || b.Err != nil || a.Receipt.Seed != b.Receipt.Seed {
		t.Fatalf("%v, %v, seeds %s and %s", a.Err, b.Err, a.Receipt.Seed, b.Receipt.Seed)
	}
	for r, want := range map[*rig]string{with: with.home, without: ""} {
		out, _ := exec.Command("mtype", "-i", r.path()+"@@"+strconv.FormatInt(partition(r, "CIDATA"), 10), "::"+machine.HomeName).Output()
		if want == "" && len(out) != 0 || !strings.Contains(string(out), want) {
			t.Errorf("%q, want %q", out, want)
		}
	}
}

// The disk is exactly as large as the image and its state: nothing moves but the
// backup table.
func TestDiskOfAnotherSize(t *testing.T) {
	for _, extra := range []int64{0, 512, 8<<30 + 512*7} {
		r := newRig(t)
		index := theIndex(t)
		size := index.Disk.Size + 512<<20 + extra
		if err := os.Truncate(r.path(), size); err != nil {
			t.Fatal(err)
		}
		r.report.Disks[0].Size = size
		if result := r.run(); result.Err != nil {
			t.Fatalf("%d bytes: %v", size, result.Err)
		}
		r.installed()
	}
}

func TestClockIsSet(t *testing.T) {
	for _, off := range []time.Duration{-17 * 365 * 24 * time.Hour, 3 * time.Hour, time.Second} {
		r := newRig(t)
		r.clock.now = time.Now().Add(off)
		result := r.run()
		if result.Err != nil {
			t.Errorf("off by %s: %v", off, result.Err)
		}
		if set, want := r.clock.set, off.Abs() > 2*time.Second; set > 0 != want {
			t.Errorf("off by %s: the clock was set %d times", off, set)
		}
		if got := time.Since(result.Receipt.Started).Abs(); got > time.Minute {
			t.Errorf("off by %s: the receipt's start is off by %s", off, got)
		}
	}
}

// A machine that is not to be installed is told so, and nothing happens.
func TestOtherOrders(t *testing.T) {
	for _, action := range []machine.Action{machine.ActionBootDisk, machine.ActionWait, machine.ActionPowerOff} {
		r := newRig(t)
		r.server.Reply = machine.Reply{Action: action, Message: "not now", After: 7}
		result := r.run()
		if result.Err != nil || result.Reply.Action != action || result.Reply.After != 7 || result.Receipt.Ticket != "" {
			t.Errorf("%s: %+v", action, result)
		}
		r.untouched(result)
		if !strings.Contains(r.screen.text(), "not now") {
			t.Errorf("%s: the message is not shown: %s", action, r.screen.text())
		}
	}
}

func TestDataDisks(t *testing.T) {
	r := newRig(t)
	keep, wipe := r.dataDisk("vdb", "KEEP"), r.dataDisk("vdc", "WIPE")
	if out, err := exec.Command("sgdisk", "-n", "1:2048:+100M", "-c", "1:slipway-data", "-n", "2:0:+50M", wipe).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	makeExt4(t, wipe, 1<<20, 100<<20)
	r.server.Ticket.Data = []machine.DataOrder{
		{Name: "a", Disk: cluster.Selector{Serial: "KEEP"}, Policy: cluster.PolicyKeep},
		{Name: "b", Disk: cluster.Selector{Serial: "WIPE"}, Policy: cluster.PolicyWipe},
		{Name: "c", Disk: cluster.Selector{Serial: "GONE"}, Policy: cluster.PolicyKeep},
	}
	r.report.Disks[1].Content = []machine.Signature{{Type: "gpt"}, {Partition: 1, Type: "partition", Label: "slipway-data"}}
	before, err := os.ReadFile(keep)
	if err != nil {
		t.Fatal(err)
	}
	result := r.run()
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	r.installed()
	if after, err := os.ReadFile(keep); err != nil || !bytes.Equal(before, after) || strings.Contains(strings.Join(r.disks.opened, " "), "vdb") {
		t.Errorf("the disk to keep was touched (%v), opened: %v", err, r.disks.opened)
	}
	if out, _ := exec.Command("blkid", "-p", wipe).CombinedOutput(); len(bytes.TrimSpace(out)) != 0 {
		t.Errorf("still on the disk: %s", out)
	}
	if out, _ := exec.Command("blkid", "-p", "-O", "1048576", wipe).CombinedOutput(); len(bytes.TrimSpace(out)) != 0 {
		t.Errorf("still where the first partition was: %s", out)
	}
	want := []machine.DataResult{{Name: "a", Serial: "KEEP", Action: "kept"}, {Name: "b", Serial: "WIPE", Action: "wiped"}, {Name: "c", Action: "absent"}}
	if got := r.server.Receipts()[0].Data; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("receipt: %+v", got)
	}
}

// dataDisk adds a disk of 256 MiB to the machine.
func (r *rig) dataDisk(name, serial string) string {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(256 << 20); err != nil {
		r.t.Fatal(err)
	}
	r.disks.paths[name] = path
	r.report.Disks = append(r.report.Disks, machine.Disk{Name: name, Serial: serial, Transport: "virtio", Size: 256 << 20, Sector: 512})
	return path
}

func makeExt4(t *testing.T, path string, offset, size int64) {
	t.Helper()
	part := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(part, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(part, size); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", part).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command("dd", "if="+part, "of="+path, "bs=1M", "conv=notrunc,sparse", "seek="+seek(offset)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// A second machine of the same server, which must not be told the ticket.
func TestAnotherTicketIsRefused(t *testing.T) {
	r := newRig(t)
	r.server.Fault = func(w http.ResponseWriter, q *http.Request) bool {
		if q.URL.Path == machine.PathTicket {
			q.Header.Set("Authorization", "Bearer another")
		}
		return false
	}
	result := r.run()
	if result.Err == nil || !strings.Contains(result.Err.Error(), "never handed out") {
		t.Errorf("%v", result.Err)
	}
	r.untouched(result)
}
