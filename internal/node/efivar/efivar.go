// Package efivar reads and writes the EFI variables through which the boot loader
// and the operating system talk (systemd's Boot Loader Interface).
package efivar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf16"

	"golang.org/x/sys/unix"
)

// Dir is where efivarfs is mounted.
const Dir = "/sys/firmware/efi/efivars"

// loader is the vendor GUID of the Boot Loader Interface.
const loader = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"

// global is the vendor GUID of the UEFI specification (section 3.3).
const global = "8be4df61-93ca-11d2-aa0d-00e098032b8c"

// Variables of the Boot Loader Interface.
const (
	// DevicePartUUID is the partition GUID of the EFI system partition that the boot loader came from.
	DevicePartUUID = "LoaderDevicePartUUID"
	// BootCountPath exists while the booted entry still counts its tries.
	BootCountPath = "LoaderBootCountPath"
	// EntryOneShot names the entry that the next boot takes, once.
	EntryOneShot = "LoaderEntryOneShot"
)

// attributes of a variable that outlives a reset: non-volatile, readable by boot
// and run time services (UEFI specification 8.2).
const attributes = 0x7

// immutable is FS_IMMUTABLE_FL of linux/fs.h.
const immutable = 0x10

// Path is where the kernel shows a variable of the boot loader.
func Path(dir, name string) string { return filepath.Join(dir, name+"-"+loader) }

// Get returns the text of a variable and whether it exists.
func Get(dir, name string) (string, bool, error) {
	raw, err := os.ReadFile(Path(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("reading EFI variable %s: %w", name, err)
	}
	text, err := Decode(raw)
	if err != nil {
		return "", false, fmt.Errorf("reading EFI variable %s: %w", name, err)
	}
	return text, true, nil
}

// Set writes a variable. efivarfs wants all of it in one write, and protects
// existing ones from being written by accident.
func Set(dir, name, value string) error {
	path := Path(dir, name)
	if err := unprotect(path); err != nil {
		return fmt.Errorf("writing EFI variable %s: %w", name, err)
	}
	if err := os.WriteFile(path, Encode(value), 0o644); err != nil {
		return fmt.Errorf("writing EFI variable %s: %w", name, err)
	}
	return nil
}

// GlobalPath is where the kernel shows a variable of the UEFI specification itself.
func GlobalPath(dir, name string) string { return filepath.Join(dir, name+"-"+global) }

// Bytes returns the value of the variable at path, without its attributes.
func Bytes(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(raw) < 4 {
		return nil, fmt.Errorf("EFI variable %s has no attributes", filepath.Base(path))
	}
	return raw[4:], nil
}

// SetBytes writes the value of the variable at path.
func SetBytes(path string, value []byte) error {
	if err := unprotect(path); err != nil {
		return err
	}
	return os.WriteFile(path, append(binary.LittleEndian.AppendUint32(nil, attributes), value...), 0o644)
}

// unprotect clears the immutable flag that efivarfs puts on variables it does not know.
func unprotect(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil || flags&immutable == 0 {
		return nil
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags&^immutable)
}

// Decode reads what efivarfs gives: four bytes of attributes, then UTF-16 with a final NUL.
func Decode(raw []byte) (string, error) {
	if len(raw) < 4 || len(raw)%2 != 0 {
		return "", fmt.Errorf("%d bytes are not attributes and UTF-16 text", len(raw))
	}
	var units []uint16
	for b := raw[4:]; len(b) >= 2; b = b[2:] {
		u := binary.LittleEndian.Uint16(b)
		if u == 0 {
			break
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units)), nil
}

// Encode is the inverse of Decode.
func Encode(text string) []byte {
	raw := binary.LittleEndian.AppendUint32(nil, attributes)
	for _, u := range append(utf16.Encode([]rune(text)), 0) {
		raw = binary.LittleEndian.AppendUint16(raw, u)
	}
	return raw
}
