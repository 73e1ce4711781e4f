package usb

import (
	"slices"
	"strings"
	"testing"
)

// stick is a device nothing speaks against.
func stick() Device {
	return Device{
		Name: "sdb", Path: "/dev/sdb", Number: "8:16", Kind: Disk, Removable: true, USB: true, Size: 32e9, SectorSize: 512,
		Vendor: "SanDisk", Model: "Ultra", Serial: "4C530001",
	}
}

func TestCheckNamesEveryReason(t *testing.T) {
	good := Request{Serial: "4C530001", Need: 1 << 30, SectorSize: 512}
	if got := Check(stick(), good); len(got) != 0 {
		t.Fatalf("refused %q", got)
	}
	for want, change := range map[string]func(*Device, *Request){
		"it is not a whole disk: partition":                   func(d *Device, _ *Request) { d.Kind = Partition },
		"it is not a whole disk: device-mapper volume":        func(d *Device, _ *Request) { d.Kind = Mapped },
		"it is not a whole disk: optical drive":               func(d *Device, _ *Request) { d.Kind = Optical },
		"it is neither removable nor on a USB bus":            func(d *Device, _ *Request) { d.Removable, d.USB = false, false },
		"the running system is on it":                         func(d *Device, _ *Request) { d.System = true },
		"it is read-only":                                     func(d *Device, _ *Request) { d.ReadOnly = true },
		"it has no medium":                                    func(d *Device, _ *Request) { d.Size = 0 },
		"sdb1 is mounted on /mnt":                             func(d *Device, _ *Request) { d.InUse = []Use{{"sdb1", "is mounted on /mnt"}} },
		"it has no serial number":                             func(d *Device, _ *Request) { d.Serial = "" },
		"no serial number was given":                          func(_ *Device, r *Request) { r.Serial = "" },
		"its serial number is 4C530001, not 4c530001":         func(_ *Device, r *Request) { r.Serial = "4c530001" },
		"it has 32.0 GB, the image needs 32.0 GB":             func(_ *Device, r *Request) { r.Need = 32e9 + 512 },
		"its sectors have 4096 bytes, those of the image 512": func(d *Device, _ *Request) { d.SectorSize = 4096 },
	} {
		d, r := stick(), good
		change(&d, &r)
		got := Check(d, r)
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	bad := stick()
	bad.Removable, bad.USB, bad.ReadOnly, bad.System = false, false, true, true
	if got := Check(bad, Request{Serial: "x", Need: 1e12, SectorSize: 4096}); len(got) != 6 {
		t.Errorf("not all reasons are listed: %q", got)
	}
	// Each of the two is enough: an SSD in a USB case is not removable, a card in a reader on PCI is not USB.
	for _, change := range []func(*Device){func(d *Device) { d.USB = false }, func(d *Device) { d.Removable = false }} {
		d := stick()
		change(&d)
		if got := Check(d, good); len(got) != 0 {
			t.Errorf("refused %q", got)
		}
	}
}

func TestSizesAreWrittenAsOnTheDevice(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 31e9: "31.0 GB", 2e12: "2.0 TB", 512 << 20: "536.9 MB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
