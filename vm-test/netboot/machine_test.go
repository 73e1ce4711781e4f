package netboot

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/slipway/slipway/vm-test/netns"
	"github.com/slipway/slipway/vm-test/qemu"
)

// Sizes of the disks, bytes: enough for the image and a state of a gigabyte.
const (
	systemSize = 3 << 30
	dataSize   = 256 << 20
	memory     = 1536 // MiB
)

// uuid is the machine's: QEMU's own is all zeros, which is no identity.
const uuid = "6c1f3c1e-5a42-4c0e-9d5e-3f0d5a1b7c10"

// box is a machine with its disks, on or off.
type box struct {
	lab    *lab
	tap    string
	uuid   string
	serial string      // of the machine; "" for none
	card   string      // address of its card; "" is that of node n1
	disks  []qemu.Disk // the system disk first
	// What the next power-on is like.
	firmware     qemu.Firmware
	networkFirst bool
	fwCfg        map[string]string
	change       func(*qemu.Config) // what else is different
	starts       int
}

// mac is the address of the machine's card.
func (b *box) mac() string { return cmp.Or(b.card, string(b.lab.node.Interfaces[0].MAC)) }

// blank is a machine of node n1 that was never used.
func (l *lab) blank(t *testing.T) *box {
	t.Helper()
	b := &box{lab: l, tap: netns.Tap(t, l.bridge), uuid: uuid}
	b.disks = []qemu.Disk{l.rawDisk(t, "system", l.node.System.Serial, systemSize)}
	for _, data := range l.node.Data {
		b.disks = append(b.disks, l.rawDisk(t, "data", data.Selector.Serial, dataSize))
	}
	return b
}

// rawDisk makes a disk of zeros. It is a raw file: what a guest writes, and only
// that, changes its bytes.
func (l *lab) rawDisk(t *testing.T, name, serial string, size int64) qemu.Disk {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".raw")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return qemu.Disk{Path: path, Format: "raw", Serial: serial}
}

// powerOn switches the machine on, with firmware that has forgotten everything.
func (b *box) powerOn(t *testing.T) *qemu.VM {
	t.Helper()
	b.starts++
	dir := t.TempDir()
	nic := b.lab.node.Interfaces[0]
	c := qemu.Config{
		Name: nodeName, Dir: dir, Accel: accel(t), Memory: memory, UUID: b.uuid, SerialNumber: b.serial,
		Firmware: b.firmware, Disks: b.disks, NetworkFirst: b.networkFirst, FwCfg: b.fwCfg,
		NICs: []qemu.NIC{{MAC: b.mac(), Tap: b.tap, SSH: nic.Addresses[0].Addr()}},
	}
	if b.change != nil {
		b.change(&c)
	}
	v, err := qemu.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		v.Close()
		if t.Failed() {
			t.Logf("the console ends in:\n%s", v.Serial[0].Tail())
		}
	})
	return v
}

// accel is software: the point is the firmware, and it is the same everywhere.
func accel(t *testing.T) qemu.Accel {
	t.Helper()
	if a := qemu.Accel(os.Getenv(qemu.AccelVariable)); a != "" {
		return a
	}
	return qemu.TCG
}

// sees waits for words on the machine's first console.
func sees(t *testing.T, v *qemu.VM, re string) []string {
	t.Helper()
	m, err := v.Serial[0].Expect(t.Context(), re, limit)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func off(t *testing.T, v *qemu.VM) {
	t.Helper()
	if err := v.PressPower(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := v.Wait(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
}

// goesOff waits until the machine has switched itself off.
func goesOff(t *testing.T, v *qemu.VM) {
	t.Helper()
	if err := v.Wait(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
}

func pull(t *testing.T, v *qemu.VM) {
	t.Helper()
	if err := v.PullPlug(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestLike(t *testing.T) {
	for text, want := range map[string]bool{
		"the image and the state need 1.4 GB": true,
		"the image and  the state need":       true,
		"the image and the sttte need":        true,
		"the image, and the state, need":      false,
		"the image and its state need 1.4 GB": false,
	} {
		if got := regexp.MustCompile(qemu.Like("the image and the state need")).MatchString(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
