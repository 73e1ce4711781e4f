package bootnext

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/slipway/slipway/internal/node/efivar"
)

// Device paths as firmware writes them, without the end node.
const (
	zeros     = "0000000000000000"
	pci       = "02010c00d041030a00000000" + "010106000003" // PciRoot(0x0)/Pci(0x3,0x0): virtio
	nvme      = pci + "03171000" + "01000000" + zeros       // NVMe(0x1,...)
	sata      = pci + "03120a000000ffff0000"                // Sata(0x0,0xFFFF,0x0)
	usb       = pci + "030506000100"                        // USB(0x1,0x0)
	mac       = pci + "030b2500" + "525400123456" + "0000" + zeros + zeros + zeros + "01"
	cdrom     = sata + "04021800" + "00000000" + zeros + zeros
	shell     = "04071400c9bdb87cebf8344faaea3ee4af6516a1" + "0406140083a5047c3e9e1c4fad65e05268d0b4d1" // Fv()/FvFile()
	partition = "0E7BC42C-4A3A-4F6B-9E2D-0F8D5B1C2A33"
)

// hardDrive is HD(1,GPT,partition,...) as an operating system enters it.
func hardDrive() string {
	return "04012a00" + "01000000" + "0008000000000000" + "0000100000000000" + "2cc47b0e3a4a6b4f9e2d0f8d5b1c2a33" + "0202"
}

func loadOption(t *testing.T, attributes uint32, title, path string) []byte {
	t.Helper()
	p, err := hex.DecodeString(path + "7fff0400")
	if err != nil {
		t.Fatal(err)
	}
	raw := binary.LittleEndian.AppendUint32(nil, attributes)
	raw = binary.LittleEndian.AppendUint16(raw, uint16(len(p)))
	for _, u := range append(utf16.Encode([]rune(title)), 0) {
		raw = binary.LittleEndian.AppendUint16(raw, u)
	}
	return append(append(raw, p...), "optional data"...)
}

func TestDisks(t *testing.T) {
	for name, tt := range map[string]struct {
		attributes uint32
		path       string
		want       bool
	}{
		"virtio": {1, pci, true}, "nvme": {1, nvme, true}, "sata": {1, sata, true},
		"inactive": {0, nvme, false}, "usb": {1, usb, false}, "network": {1, mac, false}, "cd": {1, cdrom, false},
		"firmware's own": {1, shell, false}, "partition that is there": {1, hardDrive(), true},
		"partition of an old system": {1, strings.Replace(hardDrive(), "2cc47b0e", "ffffffff", 1), false},
		"bios":                       {1, "05010800" + "00000000", false}, "nothing": {1, "", false},
	} {
		o, err := parse(loadOption(t, tt.attributes, name, tt.path))
		if err != nil || o.title != name {
			t.Errorf("%s: %+v, %v", name, o, err)
			continue
		}
		if got := o.disk([]string{strings.ToLower(partition)}); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 4, 0, 'a', 0, 0, 0, 0x7f, 0xff, 4, 0})
	f.Fuzz(func(_ *testing.T, raw []byte) {
		if o, err := parse(raw); err == nil {
			o.disk([]string{partition})
		}
	})
}

// firmware makes a directory like efivarfs.
func firmware(t *testing.T, order []uint16, current uint16, options map[string][]byte) Firmware {
	t.Helper()
	dir := t.TempDir()
	number := func(n uint16) []byte { return binary.LittleEndian.AppendUint16(nil, n) }
	var all []byte
	for _, n := range order {
		all = append(all, number(n)...)
	}
	options["BootOrder"], options["BootCurrent"] = all, number(current)
	for name, value := range options {
		if err := efivar.SetBytes(efivar.GlobalPath(dir, name), value); err != nil {
			t.Fatal(err)
		}
	}
	return Firmware{Dir: dir, Partitions: []string{partition}}
}

func TestSet(t *testing.T) {
	stick, disk := loadOption(t, 1, "UEFI QEMU STICK", usb), loadOption(t, 1, "UEFI NVME", nvme)
	for name, tt := range map[string]struct {
		order []uint16
		want  string // BootNext, or what the error says
	}{
		"the disk behind the stick": {[]uint16{7, 1, 0xA}, "\x0a\x00"},
		"the disk before it":        {[]uint16{0xA, 1, 7}, "\x0a\x00"},
		"one of the order is gone":  {[]uint16{7, 9, 0xA}, "\x0a\x00"},
		"nothing but stick and net": {[]uint16{7, 1}, "only UEFI QEMU STICK, UEFI PXE"},
		"the stick is in no order":  {[]uint16{1, 0xA}, "\x0a\x00"},
	} {
		f := firmware(t, tt.order, 7, map[string][]byte{"Boot0007": stick, "Boot000A": disk, "Boot0001": loadOption(t, 1, "UEFI PXE", mac)})
		title, err := f.Disk()
		if setErr := f.Set(); (err == nil) != (setErr == nil) {
			t.Errorf("%s: %v, %v", name, err, setErr)
		}
		if err != nil {
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		raw, err := os.ReadFile(efivar.GlobalPath(f.Dir, "BootNext"))
		if err != nil || string(raw) != "\x07\x00\x00\x00"+tt.want || title != "UEFI NVME" {
			t.Errorf("%s: %q, %q, %v", name, title, raw, err)
		}
	}
	if _, err := (Firmware{Dir: t.TempDir()}).Disk(); err == nil {
		t.Error("a machine without UEFI has a boot option")
	}
}
