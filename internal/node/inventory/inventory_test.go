package inventory

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

// tree makes a directory of files; a content that begins with "-> " is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, link := strings.CutPrefix(content, "-> "); link {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// block adds a disk at a place in the tree of devices.
func block(files map[string]string, name, place string, attributes map[string]string) {
	files["block/"+name] = "-> ../devices/" + place + "/block/" + name
	for key, value := range attributes {
		files["devices/"+place+"/block/"+name+"/"+key] = value
	}
}

// miniPC is what the kernel shows of one: an NVMe, a SATA disk, a stick, a card
// reader, an eMMC, and what is no disk.
func miniPC() map[string]string {
	f := map[string]string{
		"class/dmi/id/sys_vendor": "Vendor  GmbH \n", "class/dmi/id/product_name": "Box\x01\n", "class/dmi/id/product_serial": "SN123\n",
		"class/dmi/id/product_uuid": "4c4c4544-0042-3510-8052-b9c04f4e4632\n", "class/dmi/id/board_serial": "\n",
		"class/dmi/id/bios_vendor": "AMI\n", "class/dmi/id/bios_version": "1.2\n",
		"firmware/efi/fw_platform_size":                                        "64\n",
		"firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": "\x06\x00\x00\x00\x01",
		"firmware/acpi/tables/TPM2":                                            "x",
	}
	disk := func(size string) map[string]string {
		return map[string]string{"size": size, "queue/logical_block_size": "512\n", "queue/rotational": "0\n", "removable": "0\n", "ro": "0\n", "dev": "8:0\n"}
	}
	with := func(m map[string]string, more ...string) map[string]string {
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	block(f, "nvme0n1", "pci0000:00/0000:01:00.0/nvme/nvme0", with(disk("1000215216\n"), "device/serial", "S4EV       \n", "device/model", "Samsung SSD 970\n", "wwid", "eui.0025385b91b0c8d2\n", "dev", "259:0\n", "nvme0n1p1/partition", "1\n", "nvme0n1p1/dev", "259:1\n"))
	block(f, "sda", "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0", with(disk("1953525168\n"), "queue/rotational", "1\n", "queue/logical_block_size", "4096\n", "device/vendor", "ATA     \n", "device/model", "WDC WD10  \n", "device/wwid", "naa.50014ee2b5e7c9a0\n", "device/vpd_pg80", "\x00\x80\x00\x0f    WD-WCC4M0XYZ", "holders/md0/x", "", "dev", "8:0\n"))
	block(f, "sdb", "pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/host1/target1:0:0/1:0:0:0", with(disk("60062500\n"), "removable", "1\n", "device/model", "Cruzer\n", "device/wwid", "t10.SanDisk Cruzer\n", "dev", "8:16\n"))
	f["devices/pci0000:00/0000:00:14.0/usb1/1-2/idVendor"], f["devices/pci0000:00/0000:00:14.0/usb1/1-2/serial"] = "0781\n", "4C53000\n"
	block(f, "sdc", "pci0000:00/0000:00:14.0/usb1/1-3/1-3:1.0/host2/target2:0:0/2:0:0:0", disk("0\n"))
	block(f, "mmcblk0", "platform/mmc_host/mmc0/mmc0:0001", with(disk("61071360\n"), "device/name", "DA4032\n", "device/serial", "0x1a2b3c\n"))
	for _, none := range []string{"mmcblk0boot0", "loop0", "sr0", "dm-0", "md0", "zram0"} {
		block(f, none, "virtual", disk("1000\n"))
	}
	for name, mac := range map[string]string{"eno1": "1C:69:7A:00:00:01", "enp2s0": "1c:69:7a:00:00:02", "lo": "00:00:00:00:00:00", "wlan0": "1c:69:7a:00:00:02"} {
		f["class/net/"+name+"/address"] = mac + "\n"
		if name != "lo" {
			f["class/net/"+name+"/device/driver"] = "-> ../../../../drivers/igc"
		}
	}
	f["class/net/eno1/carrier"], f["class/net/eno1/speed"] = "1\n", "2500\n"
	f["class/net/enp2s0/speed"] = "-1\n"
	return f
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func take(t *testing.T) machine.Report {
	t.Helper()
	proc := tree(t, map[string]string{
		"cpuinfo": "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu vmx aes sse\n\nprocessor\t: 1\nmodel name\t: Some CPU\nflags\t\t: fpu vmx aes sse\n",
		"meminfo": "MemTotal:       16315404 kB\nMemFree: 1 kB\n", "self/mountinfo": "22 1 259:1 / /boot rw - vfat /dev/nvme0n1p1 rw\n",
	})
	return Take(Sources{
		Sys: os.DirFS(tree(t, miniPC())), Proc: os.DirFS(proc), Now: time.Unix(1700000000, 0), BootMAC: "1c:69:7a:00:00:01", BootDisk: "sdb",
		Open: func(name string) (Reader, error) {
			if name != "mmcblk0" {
				return nil, os.ErrPermission
			}
			return memory{bytes.NewReader(append([]byte("XFSB"), make([]byte, 1<<20)...))}, nil
		},
	})
}

func TestMiniPC(t *testing.T) {
	r := take(t)
	if err := r.Check(); err != nil {
		t.Errorf("pxed would refuse the report: %v", err)
	}
	if want := (machine.Identity{Vendor: "Vendor GmbH", Product: "Box", Serial: "SN123", UUID: "4c4c4544-0042-3510-8052-b9c04f4e4632"}); r.Identity != want {
		t.Errorf("identity %+v", r.Identity)
	}
	if want := (machine.Firmware{Mode: "uefi", Vendor: "AMI", Version: "1.2", SecureBoot: true, TPM: "2.0"}); r.Firmware != want {
		t.Errorf("firmware %+v", r.Firmware)
	}
	if r.CPU.Cores != 2 || r.CPU.Model != "Some CPU" || !slices.Equal(r.CPU.Flags, []string{"aes", "vmx"}) || r.Memory != 16315404<<10 {
		t.Errorf("processor %+v, memory %d", r.CPU, r.Memory)
	}
	want := []machine.NIC{
		{Name: "eno1", MAC: "1c:69:7a:00:00:01", Driver: "igc", Link: true, Mbps: 2500, Boot: true},
		{Name: "enp2s0", MAC: "1c:69:7a:00:00:02", Driver: "igc"},
	}
	if !slices.Equal(r.NICs, want) {
		t.Errorf("interfaces %+v", r.NICs)
	}
}

func TestMiniPCDisks(t *testing.T) {
	want := []machine.Disk{
		{Name: "mmcblk0", Serial: "0x1a2b3c", Model: "DA4032", Transport: "mmc", Size: 61071360 * 512, Sector: 512, Content: []machine.Signature{{Type: "xfs", UUID: "00000000-0000-0000-0000-000000000000"}}},
		{Name: "nvme0n1", Serial: "S4EV", WWN: "eui.0025385b91b0c8d2", Model: "Samsung SSD 970", Transport: "nvme", Size: 1000215216 * 512, Sector: 512, Busy: "/boot"},
		{Name: "sda", Serial: "WD-WCC4M0XYZ", WWN: "naa.50014ee2b5e7c9a0", Model: "WDC WD10", Transport: "sata", Size: 1953525168 * 512, Sector: 4096, Rotational: true, Busy: "md0 on sda"},
		{Name: "sdb", Serial: "4C53000", Model: "Cruzer", Transport: "usb", Size: 60062500 * 512, Sector: 512, Removable: true, Boot: true},
	}
	got := take(t).Disks
	if len(got) != len(want) {
		t.Fatalf("disks %+v", got)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
}

func TestDisksAlone(t *testing.T) {
	var names []string
	for _, d := range Disks(os.DirFS(tree(t, miniPC()))) {
		names = append(names, d.Name+" "+d.Serial)
	}
	if got := strings.Join(names, ", "); got != "mmcblk0 0x1a2b3c, nvme0n1 S4EV, sda WD-WCC4M0XYZ, sdb 4C53000" {
		t.Error(got)
	}
}

// A machine that shows nothing at all still makes a report.
func TestNothing(t *testing.T) {
	r := Take(Sources{Sys: os.DirFS(t.TempDir()), Proc: os.DirFS(t.TempDir())})
	if err := r.Check(); err != nil || r.Firmware.Mode != "bios" || r.Disks != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
