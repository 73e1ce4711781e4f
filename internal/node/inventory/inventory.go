// Package inventory finds out what machine this is: what the kernel shows in /sys
// and /proc, and what is recognisable on its disks. It writes nothing.
package inventory

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

// Sources is where an inventory is taken from.
type Sources struct {
	Sys  fs.FS // /sys
	Proc fs.FS // /proc
	// Open opens a disk for reading, by the kernel's name.
	Open func(name string) (Reader, error)
	// BootMAC is the address that the machine netbooted from, or "".
	BootMAC string
	// BootDisk is the kernel's name of the disk that the installer came from,
	// and BootPartition the GUID of the partition its boot loader came from.
	BootDisk, BootPartition string
	Now                     time.Time
}

// Reader is an open disk.
type Reader interface {
	io.ReaderAt
	io.Closer
}

// Take takes the inventory. What cannot be read is left empty.
func Take(s Sources) machine.Report {
	return machine.Report{
		Format:   machine.ReportFormat,
		Identity: s.identity(),
		Firmware: s.firmware(),
		CPU:      s.cpu(),
		Memory:   s.memory(),
		Disks:    s.disks(),
		NICs:     s.nics(),
		Clock:    s.Now,
	}
}

// maxText is the longest text of a report, bytes.
const maxText = 256

// clean makes a text of the hardware fit for a report: vendors fill fields with
// padding, control characters and other encodings.
func clean(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	return strings.ToValidUTF8(s[:min(len(s), maxText)], "")
}

// file is the text of a file of /sys, or "".
func (s Sources) file(elements ...string) string {
	data, err := fs.ReadFile(s.Sys, path.Join(elements...))
	if err != nil {
		return ""
	}
	return clean(string(data))
}

// number is the number in a file of /sys, or 0.
func (s Sources) number(elements ...string) int64 {
	n, err := strconv.ParseInt(s.file(elements...), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (s Sources) exists(elements ...string) bool {
	_, err := fs.Stat(s.Sys, path.Join(elements...))
	return err == nil
}

// names lists a directory of /sys.
func (s Sources) names(dir string) []string {
	entries, err := fs.ReadDir(s.Sys, dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func (s Sources) identity() machine.Identity {
	return machine.Identity{
		Vendor:      s.file("class/dmi/id/sys_vendor"),
		Product:     s.file("class/dmi/id/product_name"),
		Serial:      s.file("class/dmi/id/product_serial"),
		UUID:        s.file("class/dmi/id/product_uuid"),
		BoardSerial: s.file("class/dmi/id/board_serial"),
	}
}

// secureBoot is the EFI variable (UEFI specification 3.3); four bytes of
// attributes come before its value.
const secureBoot = "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

func (s Sources) firmware() machine.Firmware {
	f := machine.Firmware{Mode: "bios", Vendor: s.file("class/dmi/id/bios_vendor"), Version: s.file("class/dmi/id/bios_version"), TPM: s.tpm()}
	if s.exists("firmware/efi") {
		f.Mode = "uefi"
	}
	if v, err := fs.ReadFile(s.Sys, secureBoot); err == nil && len(v) == 5 {
		f.SecureBoot = v[4] == 1
	}
	return f
}

// tpm asks the driver, and without one the firmware's tables.
func (s Sources) tpm() string {
	switch s.file("class/tpm/tpm0/tpm_version_major") {
	case "2":
		return "2.0"
	case "1":
		return "1.2"
	}
	switch {
	case s.exists("firmware/acpi/tables/TPM2"):
		return "2.0"
	case s.exists("firmware/acpi/tables/TCPA"):
		return "1.2"
	}
	return ""
}

// flags are those of the processor that somebody may want to know of.
func flags() []string {
	return []string{"aes", "avx", "avx2", "avx512f", "bmi2", "constant_tsc", "fma", "hypervisor", "lm", "nx", "pclmulqdq", "popcnt", "rdrand", "sha_ni", "sse4_2", "svm", "vmx", "x2apic"}
}

func (s Sources) cpu() machine.CPU {
	var c machine.CPU
	for key, value := range s.lines("cpuinfo") {
		switch key {
		case "processor":
			c.Cores++
		case "model name":
			c.Model = cmp.Or(c.Model, clean(value))
		case "flags":
			if c.Flags == nil {
				c.Flags = slices.DeleteFunc(strings.Fields(value), func(f string) bool { return !slices.Contains(flags(), f) })
				slices.Sort(c.Flags)
			}
		}
	}
	return c
}

func (s Sources) memory() int64 {
	for key, value := range s.lines("meminfo") {
		if f := strings.Fields(value); key == "MemTotal" && len(f) > 0 {
			n, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// lines goes through the "key : value" lines of a file of /proc.
func (s Sources) lines(name string) func(yield func(key, value string) bool) {
	data, err := fs.ReadFile(s.Proc, name)
	if err != nil {
		data = nil
	}
	return func(yield func(key, value string) bool) {
		scan := bufio.NewScanner(bytes.NewReader(data))
		for scan.Scan() {
			key, value, _ := strings.Cut(scan.Text(), ":")
			if !yield(strings.TrimSpace(key), strings.TrimSpace(value)) {
				return
			}
		}
	}
}
