package pxe

import "fmt"

// Firmware is the way in which a machine boots from the network.
type Firmware int

// The firmwares. Unsupported has announced an architecture that pxed has no boot
// loader for.
const (
	NoNetboot Firmware = iota // not a netboot client at all
	BIOS
	UEFITFTP
	UEFIHTTP
	Unsupported
)

// String is the word for logs and metrics.
func (f Firmware) String() string {
	switch f {
	case BIOS:
		return "bios"
	case UEFITFTP:
		return "uefi-tftp"
	case UEFIHTTP:
		return "uefi-http"
	case Unsupported:
		return "unsupported"
	default:
		return "none"
	}
}

// arch is what one value of option 93 means.
type arch struct {
	name     string
	firmware Firmware
}

// architectures are the values of option 93 (RFC 4578, and the registry
// "Processor Architecture Types"). The RFC exchanged 7 and 9: firmware for x64
// sends 7, some sends 9, and no machine with EFI byte code was ever seen.
var architectures = map[uint16]arch{
	0:  {"x86 BIOS", BIOS},
	1:  {"NEC PC-98", Unsupported},
	2:  {"Itanium", Unsupported},
	6:  {"x86 UEFI (32 bit)", Unsupported},
	7:  {"x64 UEFI", UEFITFTP},
	9:  {"x64 UEFI", UEFITFTP},
	10: {"ARM UEFI (32 bit)", Unsupported},
	11: {"ARM UEFI (64 bit)", Unsupported},
	15: {"x86 UEFI (32 bit) HTTP", Unsupported},
	16: {"x64 UEFI HTTP", UEFIHTTP},
	18: {"ARM UEFI (32 bit) HTTP", Unsupported},
	19: {"ARM UEFI (64 bit) HTTP", Unsupported},
	20: {"x86 BIOS HTTP", Unsupported},
	27: {"RISC-V UEFI (64 bit)", Unsupported},
	28: {"RISC-V UEFI (64 bit) HTTP", Unsupported},
}

// Arch is a value of option 93.
type Arch uint16

// String names the architecture.
func (a Arch) String() string {
	if known, ok := architectures[uint16(a)]; ok {
		return known.name
	}
	return fmt.Sprintf("architecture %d", uint16(a))
}

// Firmware is the way in which a machine of this architecture boots.
func (a Arch) Firmware() Firmware {
	if known, ok := architectures[uint16(a)]; ok {
		return known.firmware
	}
	return Unsupported
}

// bestArch chooses from the architectures that a machine says it can run, in its
// order of preference, the first that there is a boot loader for.
func bestArch(value []byte) (Arch, bool) {
	if len(value) < 2 {
		return 0, false
	}
	first := Arch(uint16(value[0])<<8 | uint16(value[1]))
	for v := value; len(v) >= 2; v = v[2:] {
		if a := Arch(uint16(v[0])<<8 | uint16(v[1])); a.Firmware() != Unsupported {
			return a, true
		}
	}
	return first, true
}
