package diskselect

import (
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

type sample struct {
	name  string
	disks []machine.Disk
	order Order
	want  string // "system serial; data=action serial; …", or "" when refused
	says  string // in the refusal, or in the notes
}

func busy(by string) func(*machine.Disk) { return func(d *machine.Disk) { d.Busy = by } }

func systemSamples() []sample {
	a, b := nvme("nvme0n1", "S5GXNX0A", 1000*gb), nvme("nvme1n1", "S5GXNX0B", 1000*gb)
	small, mmc := sata("sda", "2031E4A0", 500*gb), machine.Disk{Name: "mmcblk0", Serial: "0x1a2b3c4d", Transport: "mmc", Size: 64 * gb, Sector: 512}
	signature := func(kind string) func(*machine.Disk) {
		return func(d *machine.Disk) { d.Content = []machine.Signature{{Type: kind}} }
	}
	return []sample{
		{"the only disk", []machine.Disk{a}, Order{System: bySerial("S5GXNX0A")}, "S5GXNX0A", ""},
		{"of two equal ones", []machine.Disk{a, b}, Order{System: bySerial("S5GXNX0B")}, "S5GXNX0B", ""},
		{"swapped", []machine.Disk{with(b, func(d *machine.Disk) { d.Name = "nvme0n1" }), with(a, func(d *machine.Disk) { d.Name = "nvme1n1" })}, Order{System: bySerial("S5GXNX0B")}, "S5GXNX0B", ""},
		{"beside the stick", []machine.Disk{stick("sda"), a}, Order{System: cluster.Selector{MinSize: 1 << 30}}, "S5GXNX0A", ""},
		{"by WWN", []machine.Disk{a, small}, Order{System: cluster.Selector{WWN: "0x5000c5002031e4a0"}}, "2031E4A0", ""},
		{"by WWN in the naa form", []machine.Disk{a, small}, Order{System: cluster.Selector{WWN: "naa.5000c5002031e4a0"}}, "2031E4A0", ""},
		{"by size", []machine.Disk{a, small, mmc}, Order{System: cluster.Selector{MinSize: cluster.Size(400 * gb), MaxSize: cluster.Size(600 * gb)}}, "2031E4A0", ""},
		{"by model", []machine.Disk{a, small}, Order{System: cluster.Selector{Model: "CT500MX500SSD1"}}, "2031E4A0", ""},
		{"serial padded by the firmware", []machine.Disk{with(a, func(d *machine.Disk) { d.Serial = "  S5GXNX0A " })}, Order{System: bySerial("S5GXNX0A")}, "S5GXNX0A", ""},
		{"earlier system", []machine.Disk{system(a)}, Order{System: bySerial("S5GXNX0A")}, "S5GXNX0A", ""},
		{"Windows, confirmed", []machine.Disk{windows(a)}, Order{System: bySerial("S5GXNX0A"), Overwrite: []string{"S5GXNX0A"}}, "S5GXNX0A", ""},
		{"Windows, confirmed by WWN", []machine.Disk{windows(a)}, Order{System: bySerial("S5GXNX0A"), Overwrite: []string{"eui.00253s5gxnx0a"}}, "S5GXNX0A", ""},

		{"no disk", nil, Order{System: bySerial("S5GXNX0A")}, "", "no disk is the system disk"},
		{"no selector", []machine.Disk{a}, Order{}, "", "does not say which disk"},
		{"another serial", []machine.Disk{a}, Order{System: bySerial("S5GXNX0C")}, "", "its serial number is S5GXNX0A, wanted is S5GXNX0C"},
		{"no serial on the device", []machine.Disk{with(a, func(d *machine.Disk) { d.Serial = "" })}, Order{System: bySerial("S5GXNX0A")}, "", "it has no serial number"},
		{"no WWN on the device", []machine.Disk{mmc}, Order{System: cluster.Selector{WWN: "0x5000c5002031e4a0"}}, "", "it has no WWN"},
		{"serial and size disagree", []machine.Disk{a}, Order{System: cluster.Selector{Serial: "S5GXNX0A", MaxSize: cluster.Size(gb)}}, "", "at most 1GB"},
		{"two fit", []machine.Disk{a, b}, Order{System: cluster.Selector{MinSize: 1 << 30}}, "", "2 disks could be the system disk"},
		{"two fit, one is full", []machine.Disk{a, windows(b)}, Order{System: cluster.Selector{MinSize: 1 << 30}}, "", "2 disks could be the system disk"},
		{"two fit, one is busy", []machine.Disk{a, with(b, busy("/mnt"))}, Order{System: cluster.Selector{Model: a.Model}}, "", "name the disk by its serial number"},
		{"only the stick", []machine.Disk{stick("sda")}, Order{System: cluster.Selector{MinSize: 1 << 30}}, "", "it is attached by USB; it is removable"},
		{"the stick by its serial", []machine.Disk{stick("sda")}, Order{System: bySerial("4C530001"), Overwrite: []string{"4C530001"}}, "", "it is attached by USB"},
		{"USB that claims to be fixed", []machine.Disk{with(a, func(d *machine.Disk) { d.Transport = "usb" })}, Order{System: bySerial("S5GXNX0A")}, "", "it is attached by USB"},
		{"boot medium", []machine.Disk{with(a, func(d *machine.Disk) { d.Boot = true })}, Order{System: bySerial("S5GXNX0A")}, "", "the machine was started from it"},
		{"no medium", []machine.Disk{with(a, func(d *machine.Disk) { d.Size = 0 })}, Order{System: bySerial("S5GXNX0A")}, "", "no medium"},
		{"read-only", []machine.Disk{with(a, func(d *machine.Disk) { d.ReadOnly = true })}, Order{System: bySerial("S5GXNX0A")}, "", "it is read-only"},
		{"mounted", []machine.Disk{with(a, busy("/mnt"))}, Order{System: bySerial("S5GXNX0A"), Overwrite: []string{"S5GXNX0A"}}, "", "it is in use by /mnt"},
		{"in a RAID", []machine.Disk{with(a, busy("md0"))}, Order{System: bySerial("S5GXNX0A")}, "", "it is in use by md0"},
		{"too small", []machine.Disk{mmc}, Order{System: cluster.Selector{MinSize: 1 << 30}, Need: 65 * gb}, "", "it has 64.0 GB, the image and the state need 65.0 GB"},
		{"4096-byte sectors", []machine.Disk{with(a, func(d *machine.Disk) { d.Sector = 4096 })}, Order{System: bySerial("S5GXNX0A")}, "", "its logical sectors have 4096 bytes, the image is for 512"},
		{"sectors not known", []machine.Disk{with(a, func(d *machine.Disk) { d.Sector = 0 })}, Order{System: bySerial("S5GXNX0A")}, "", "0 bytes"},
		{"Windows", []machine.Disk{windows(a)}, Order{System: bySerial("S5GXNX0A")}, "", `ntfs "Windows" on partition 3`},
		{"Windows, another disk confirmed", []machine.Disk{windows(a), b}, Order{System: bySerial("S5GXNX0A"), Overwrite: []string{"S5GXNX0B"}}, "", "--overwrite S5GXNX0A"},
		{"ZFS on the whole disk", []machine.Disk{with(a, signature("zfs_member"))}, Order{System: bySerial("S5GXNX0A")}, "", "zfs_member"},
		{"an empty partition table", []machine.Disk{with(a, signature("gpt"))}, Order{System: bySerial("S5GXNX0A")}, "", "foreign data (gpt)"},
		{"a file system that calls itself ours", []machine.Disk{with(a, func(d *machine.Disk) { d.Content = []machine.Signature{{Type: "ext4", Label: "slipway-a"}} })}, Order{System: bySerial("S5GXNX0A")}, "", "foreign data"},
		{"earlier system and something else", []machine.Disk{with(system(a), func(d *machine.Disk) { d.Content = append(d.Content, part(6, "ext4", "photos")) })}, Order{System: bySerial("S5GXNX0A")}, "", "photos"},
		{"earlier system with data", []machine.Disk{with(system(a), func(d *machine.Disk) { d.Content = append(d.Content, part(6, "ext4", "slipway-data")) })}, Order{System: bySerial("S5GXNX0A"), Overwrite: []string{"S5GXNX0A"}}, "", "never goes over data"},
		{"a data disk, confirmed", []machine.Disk{longhorn(a)}, Order{System: bySerial("S5GXNX0A"), Overwrite: []string{"S5GXNX0A"}}, "", "never goes over data"},
		{"one serial on two disks", []machine.Disk{a, with(b, func(d *machine.Disk) { d.Serial = a.Serial })}, Order{System: bySerial("S5GXNX0A")}, "", "2 disks could be"},
		{"one serial on two disks, one by size", []machine.Disk{a, with(small, func(d *machine.Disk) { d.Serial = a.Serial })}, Order{System: cluster.Selector{Serial: "S5GXNX0A", MinSize: cluster.Size(900 * gb)}}, "", "sda has the same serial number"},
		{"one WWN on two disks, one by size", []machine.Disk{a, with(small, func(d *machine.Disk) { d.WWN = a.WWN })}, Order{System: cluster.Selector{WWN: a.WWN, MinSize: cluster.Size(900 * gb)}}, "", "sda has the same WWN"},
		{"junk serial", []machine.Disk{with(a, func(d *machine.Disk) { d.Serial = "0123456789" })}, Order{System: bySerial("0123456789")}, "", "identifies nothing"},
		{"junk confirms nothing", []machine.Disk{windows(with(a, func(d *machine.Disk) { d.Serial = "00000000" }))}, Order{System: cluster.Selector{MinSize: 1 << 30}, Overwrite: []string{"00000000"}}, "", "foreign data"},
		{"nothing to confirm by", []machine.Disk{windows(with(a, func(d *machine.Disk) { d.Serial, d.WWN = "", "" }))}, Order{System: cluster.Selector{MinSize: 1 << 30}}, "", "empty it by hand"},
		{"virtio cuts the serial", []machine.Disk{{Name: "vda", Serial: "slipway-dev-n1-syste", Transport: "virtio", Size: 20 * gb, Sector: 512}}, Order{System: bySerial("slipway-dev-n1-system")}, "", "virtio cuts serial numbers at 20"},
	}
}

func dataSamples() []sample {
	a, b, c := nvme("nvme0n1", "S5GXNX0A", 1000*gb), nvme("nvme1n1", "S5GXNX0B", 1000*gb), sata("sda", "2031E4A0", 500*gb)
	sys := bySerial("S5GXNX0A")
	data := func(d ...machine.DataOrder) Order { return Order{System: sys, Data: d} }
	strict := func(d ...machine.DataOrder) Order { return Order{System: sys, Data: d, Strict: true} }
	return []sample{
		{"data is kept", []machine.Disk{a, longhorn(b)}, data(keep("d", bySerial("S5GXNX0B"))), "S5GXNX0A; d=kept S5GXNX0B", ""},
		{"kept though busy", []machine.Disk{a, with(longhorn(b), busy("/data"))}, data(keep("d", bySerial("S5GXNX0B"))), "S5GXNX0A; d=kept S5GXNX0B", ""},
		{"blank is left alone", []machine.Disk{a, b}, data(keep("d", bySerial("S5GXNX0B"))), "S5GXNX0A; d=kept S5GXNX0B", "it is blank"},
		{"absent", []machine.Disk{a}, data(keep("d", bySerial("S5GXNX0B"))), "S5GXNX0A; d=absent ", "no such disk"},
		{"two data disks", []machine.Disk{a, longhorn(b), c}, data(keep("d", bySerial("S5GXNX0B")), wipe("e", bySerial("2031E4A0"))), "S5GXNX0A; d=kept S5GXNX0B; e=wiped 2031E4A0", ""},
		{"data is wiped", []machine.Disk{a, longhorn(b)}, data(wipe("d", bySerial("S5GXNX0B"))), "S5GXNX0A; d=wiped S5GXNX0B", ""},
		{"the other one of two", []machine.Disk{a, b}, data(wipe("d", cluster.Selector{MinSize: 1 << 30})), "S5GXNX0A; d=wiped S5GXNX0B", ""},
		{"foreign, confirmed", []machine.Disk{a, windows(b)}, Order{System: sys, Data: []machine.DataOrder{wipe("d", bySerial("S5GXNX0B"))}, Overwrite: []string{"S5GXNX0B"}}, "S5GXNX0A; d=wiped S5GXNX0B", ""},

		{"kept, but blank", []machine.Disk{a, b}, strict(keep("d", bySerial("S5GXNX0B"))), "", "it is blank, and its data shall be kept"},
		{"kept, but absent", []machine.Disk{a}, strict(keep("d", bySerial("S5GXNX0B"))), "", "no disk is the d disk"},
		{"kept, but foreign", []machine.Disk{a, windows(b)}, data(keep("d", bySerial("S5GXNX0B"))), "", "is not Slipway's"},
		{"kept, but a system", []machine.Disk{a, system(b)}, data(keep("d", bySerial("S5GXNX0B"))), "", "is not Slipway's"},
		{"wiped, but absent", []machine.Disk{a}, data(wipe("d", bySerial("S5GXNX0B"))), "", "no disk is the d disk"},
		{"wiped, but foreign", []machine.Disk{a, windows(b)}, data(wipe("d", bySerial("S5GXNX0B"))), "", "--overwrite S5GXNX0B"},
		{"wiped, but another system", []machine.Disk{a, system(b)}, data(wipe("d", bySerial("S5GXNX0B"))), "", "foreign data"},
		{"wiped, but in use", []machine.Disk{a, with(longhorn(b), busy("dm-0"))}, data(wipe("d", bySerial("S5GXNX0B"))), "", "in use by dm-0"},
		{"wiped, but a stick", []machine.Disk{a, stick("sda")}, data(wipe("d", bySerial("4C530001"))), "", "attached by USB"},
		{"the system disk", []machine.Disk{a, b}, data(wipe("d", sys)), "", "is the system already"},
		{"one disk for two", []machine.Disk{a, b}, data(wipe("d", bySerial("S5GXNX0B")), wipe("e", bySerial("S5GXNX0B"))), "", "is data disk d already"},
		{"which of two", []machine.Disk{a, b, c}, data(wipe("d", cluster.Selector{MinSize: 1 << 30})), "", "2 disks could be the d disk"},
		{"no policy", []machine.Disk{a, b}, data(machine.DataOrder{Name: "d", Disk: bySerial("S5GXNX0B")}), "", "no policy"},
		{"no selector", []machine.Disk{a, b}, data(wipe("d", cluster.Selector{})), "", "does not say which disk"},
	}
}

func samples() []sample {
	all := append(systemSamples(), dataSamples()...)
	for i := range all {
		all[i].order.Sectors = []int{512}
	}
	return all
}

// outcome is a choice on one line.
func outcome(c Choice) string {
	out := c.System.ID()
	for _, d := range c.Data {
		out += fmt.Sprintf("; %s=%s %s", d.Name, d.Action, d.Disk.ID())
	}
	return out
}

func TestSelect(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			c, err := Select(s.disks, s.order)
			if s.want == "" {
				var refused *Error
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), s.says) {
					t.Fatalf("%s, %v: want a refusal with %q", outcome(c), err, s.says)
				}
				if !reflect.DeepEqual(c, Choice{}) {
					t.Errorf("a choice beside the refusal: %+v", c)
				}
				return
			}
			if err != nil || outcome(c) != s.want {
				t.Fatalf("%s, %v: want %s", outcome(c), err, s.want)
			}
			notes := ""
			for _, d := range c.Data {
				notes += d.Note
			}
			if !strings.Contains(notes, s.says) {
				t.Errorf("notes %q: want %q", notes, s.says)
			}
			everyDiskSpokenFor(t, s, c)
		})
	}
}

// everyDiskSpokenFor: a disk is used, or there are reasons why it is not.
func everyDiskSpokenFor(t *testing.T, s sample, c Choice) {
	t.Helper()
	used := 1
	for _, d := range c.Data {
		if d.Action != Absent {
			used++
		}
	}
	if used+len(c.Refused) != len(s.disks) {
		t.Errorf("%d disks, %d used, %d refused", len(s.disks), used, len(c.Refused))
	}
	for _, r := range c.Refused {
		if len(r.Reasons) == 0 {
			t.Errorf("no reason: %s", r)
		}
	}
}

// Whatever order the kernel finds the disks in, and whatever names it gives them,
// the choice is the same.
func TestOrderDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for _, s := range samples() {
		want, wantErr := Select(s.disks, s.order)
		for range 40 {
			disks := append([]machine.Disk(nil), s.disks...)
			random.Shuffle(len(disks), func(i, j int) { disks[i], disks[j] = disks[j], disks[i] })
			names := random.Perm(len(disks))
			for i := range disks {
				disks[i].Name = fmt.Sprintf("disk%d", names[i])
			}
			got, err := Select(disks, s.order)
			if outcome(got) != outcome(want) || (err == nil) != (wantErr == nil) {
				t.Fatalf("%s: %s, %v, and in another order %s, %v", s.name, outcome(want), wantErr, outcome(got), err)
			}
		}
	}
}

// No order ever leads to a disk that must not be written, among random inventories.
func TestNeverWritesWhatItMustNot(t *testing.T) {
	random := rand.New(rand.NewSource(2))
	chosen := 0
	for range 20000 {
		disks, order := randomInventory(random)
		c, err := Select(disks, order)
		if err != nil {
			continue
		}
		chosen++
		written := []machine.Disk{c.System}
		for _, d := range c.Data {
			if d.Action == Wipe {
				written = append(written, d.Disk)
			}
		}
		for i, d := range written {
			if d.Boot || d.Removable || d.ReadOnly || d.Busy != "" || d.Transport == "usb" || i == 0 && (hasData(d) || d.Sector != 512) {
				t.Fatalf("%+v is written", d)
			}
			if holds(d) == foreign && !strings.Contains(strings.Join(order.Overwrite, " "), d.Serial) {
				t.Fatalf("foreign data of %+v is lost", d)
			}
		}
		if len(written) == 2 && written[0].Name == written[1].Name {
			t.Fatal("one disk for system and data")
		}
	}
	if chosen < 1000 {
		t.Errorf("only %d choices of 20000", chosen)
	}
}

func randomInventory(random *rand.Rand) ([]machine.Disk, Order) {
	var disks []machine.Disk
	for i := range 1 + random.Intn(4) {
		d := nvme(fmt.Sprintf("nvme%dn1", i), fmt.Sprintf("SER%d", random.Intn(6)), int64(1+random.Intn(3))*500*gb)
		d = []func(machine.Disk) machine.Disk{windows, system, longhorn, func(d machine.Disk) machine.Disk { return d }}[random.Intn(4)](d)
		for _, spoil := range []func(){func() { d.Boot = true }, func() { d.Removable = true }, func() { d.ReadOnly = true }, func() { d.Busy = "md0" }, func() { d.Transport = "usb" }, func() { d.Sector = 4096 }} {
			if random.Intn(12) == 0 {
				spoil()
			}
		}
		disks = append(disks, d)
	}
	pick := func() cluster.Selector {
		if random.Intn(3) == 0 {
			return cluster.Selector{MinSize: cluster.Size(int64(random.Intn(3)) * 400 * gb), Model: disks[0].Model}
		}
		return bySerial(fmt.Sprintf("SER%d", random.Intn(6)))
	}
	order := Order{System: pick(), Need: 100 * gb, Sectors: []int{512}}
	if random.Intn(2) == 0 {
		order.Data = append(order.Data, machine.DataOrder{Name: "d", Disk: pick(), Policy: []cluster.Policy{cluster.PolicyKeep, cluster.PolicyWipe}[random.Intn(2)]})
	}
	if random.Intn(2) == 0 {
		order.Overwrite = []string{fmt.Sprintf("SER%d", random.Intn(6))}
	}
	return disks, order
}

func TestReasonsAreSentences(t *testing.T) {
	for _, s := range samples() {
		_, err := Select(s.disks, s.order)
		var refused *Error
		if !errors.As(err, &refused) {
			continue
		}
		for _, line := range strings.Split(err.Error(), "\n") {
			if strings.HasSuffix(line, ".") || strings.Contains(line, "%!") || strings.Contains(line, "  ") || len(line) < 20 {
				t.Errorf("%s: %q", s.name, line)
			}
		}
		if len(refused.Refused) == 0 && len(s.disks) > 0 && !s.order.System.IsZero() && !strings.Contains(err.Error(), "already") && !strings.Contains(s.name, "no selector") {
			t.Errorf("%s: no disk is named: %v", s.name, err)
		}
	}
}
