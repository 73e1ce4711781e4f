package usb_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/imagebuild/usb"
	"github.com/slipway/slipway/internal/imagebuild/usb/usbtest"
)

func machine(t *testing.T, change ...func(usbtest.Machine) error) usbtest.Machine {
	t.Helper()
	m, err := usbtest.New(t.TempDir())
	if err == nil {
		err = m.Typical(32e9)
	}
	for _, c := range change {
		if err == nil {
			err = c(m)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func find(t *testing.T, m usbtest.Machine, name string) usb.Device {
	t.Helper()
	d, err := m.Host().Find(filepath.Join(m.Dir, "dev", name))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStickIsRecognised(t *testing.T) {
	d := find(t, machine(t), "sdb")
	if d.Kind != usb.Disk || !d.USB || !d.Removable || d.Size != 32e9 || d.Serial != "4C530001" || d.Number != "8:16" || d.System {
		t.Errorf("%+v", d)
	}
	if d.Title() != "SanDisk Ultra Fit, 32.0 GB" {
		t.Errorf("title %q", d.Title())
	}
	if got := usb.Candidate(d); len(got) != 0 {
		t.Errorf("refused %q", got)
	}
	var b strings.Builder
	usb.Describe(&b, d)
	for _, want := range []string{"serial  4C530001", `sdb1  16.0 GB vfat "HOLIDAY 2019" ("Basic data")`, "sdb2  8.0 GB\n  sdb10  8.0 GB\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("description lacks %q:\n%s", want, b.String())
		}
	}
}

func TestOthersAreRefused(t *testing.T) {
	m := machine(t)
	for name, want := range map[string][]string{
		"nvme0n1":   {"it is neither removable nor on a USB bus", "the running system is on it", "nvme0n1p1 is mounted on /boot/efi", "nvme0n1p2 is held by dm-0"},
		"nvme0n1p2": {"it is not a whole disk: partition"},
		"dm-0":      {"it is not a whole disk: device-mapper volume", "dm-0 is mounted on /"},
		"sda":       {"it is neither removable nor on a USB bus"},
		"sr0":       {"it is not a whole disk: optical drive", "it has no medium"},
		"loop0":     {"it is not a whole disk: loop device"},
		"sdb1":      {"it is not a whole disk: partition"},
	} {
		got := strings.Join(usb.Candidate(find(t, m, name)), "\n")
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q lacks %q", name, got, w)
			}
		}
	}
	if s := find(t, m, "sda").Serial; s != "WD-12345" {
		t.Errorf("serial of the SATA disk is %q", s)
	}
	if s := find(t, m, "nvme0n1").Serial; s != "S4EVNX0M" {
		t.Errorf("serial of the NVMe disk is %q", s)
	}
}

func TestUseOfAStickIsFound(t *testing.T) {
	for want, change := range map[string]func(usbtest.Machine) error{
		"sdb1 is mounted on /media/my stick": func(m usbtest.Machine) error { return m.Mount("8:17", `/media/my\040stick`, "/dev/sdb1") },
		"sdb is mounted on /mnt":             func(m usbtest.Machine) error { return m.Mount("8:16", "/mnt", "/dev/sdb") },
		// btrfs has a number of its own.
		"sdb2 is mounted on /b": func(m usbtest.Machine) error { return m.Mount("0:45", "/b", "/dev/sdb2") },
		"sdb2 is used as swap":  func(m usbtest.Machine) error { return m.Swap("/dev/sdb2") },
		"sdb is held by md127": func(m usbtest.Machine) error {
			return m.Attribute("pci0000:00/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdb/holders/md127", "")
		},
		"it is read-only": func(m usbtest.Machine) error {
			return m.Attribute("pci0000:00/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdb/ro", "1\n")
		},
		"the running system is on it": func(m usbtest.Machine) error { return m.Mount("8:18", "/", "/dev/sdb2") },
	} {
		got := strings.Join(usb.Candidate(find(t, machine(t, change), "sdb")), "\n")
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestFindFollowsLinksAndNothingElse(t *testing.T) {
	m := machine(t)
	link := filepath.Join(m.Dir, "dev/by-id")
	if err := os.Symlink("sdb", link); err != nil {
		t.Fatal(err)
	}
	if d, err := m.Host().Find(link); err != nil || d.Path != filepath.Join(m.Dir, "dev/sdb") {
		t.Errorf("%+v, %v", d, err)
	}
	other := filepath.Join(t.TempDir(), "sdb") // a file of that name is no device
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{other, filepath.Join(m.Dir, "dev/none"), m.Dir} {
		if _, err := m.Host().Find(path); err == nil || diag.HintOf(err) == "" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSurveyPutsSticksFirst(t *testing.T) {
	list, err := usb.Survey(machine(t).Host(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range list {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); got != "sdb dm-0 nvme0n1 sda sr0" || len(list[0].Refusals) != 0 {
		t.Errorf("listed %s", got)
	}
}

// With a build, a stick that is too small for it is none that can be written.
func TestSurveyForABuild(t *testing.T) {
	for need, says := range map[usb.Request]string{
		{Need: 1 << 20, SectorSize: 512}:  "",
		{Need: 1 << 40, SectorSize: 512}:  "the image needs 1.1 TB",
		{Need: 1 << 20, SectorSize: 4096}: "its sectors have 512 bytes, those of the image 4096",
	} {
		list, err := usb.Survey(machine(t).Host(), &need)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(l usb.Listed) bool { return l.Name == "sdb" })
		if got := strings.Join(list[i].Refusals, "; "); !strings.Contains(got, says) || says == "" && got != "" {
			t.Errorf("%+v: %q", need, got)
		}
	}
}

func TestThisMachineCanBeListed(t *testing.T) {
	if _, err := usb.Survey(usb.Host{}, nil); err != nil {
		t.Error(err)
	}
}
