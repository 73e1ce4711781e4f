// Package bootnext lets UEFI firmware start a disk of the machine the next time, and
// only then. A machine that was started from a stick would otherwise start from it
// again for as long as it is plugged in.
package bootnext

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/node/efivar"
)

// Firmware is where the variables of the firmware are.
type Firmware struct {
	Dir string // efivarfs
	// Partitions are the GUIDs of the partitions of the machine's own disks.
	Partitions []string
}

// Disk names the boot option that Set would choose, in the firmware's words. The
// error says why there is none.
func (f Firmware) Disk() (string, error) {
	_, o, err := f.choose()
	return o.title, err
}

// Set chooses the option. Firmware obeys once (UEFI specification, section 3.1.2).
func (f Firmware) Set() error {
	n, _, err := f.choose()
	if err != nil {
		return err
	}
	if err := efivar.SetBytes(efivar.GlobalPath(f.Dir, "BootNext"), binary.LittleEndian.AppendUint16(nil, n)); err != nil {
		return fmt.Errorf("setting BootNext: %w", err)
	}
	return nil
}

func (f Firmware) choose() (uint16, option, error) {
	order, err := f.numbers("BootOrder")
	if err != nil {
		return 0, option{}, err
	}
	current, err := f.numbers("BootCurrent")
	if err != nil {
		return 0, option{}, err
	}
	if len(current) != 1 {
		return 0, option{}, errors.New("the firmware does not say what it has booted")
	}
	options, titles := map[uint16]option{}, []string{}
	for _, n := range order {
		raw, err := efivar.Bytes(efivar.GlobalPath(f.Dir, fmt.Sprintf("Boot%04X", n)))
		if err != nil {
			continue // in the order, but gone: firmware skips it as well
		}
		if o, err := parse(raw); err == nil {
			options[n], titles = o, append(titles, o.title)
		}
	}
	n, ok := choose(current[0], order, options, f.Partitions)
	if !ok {
		return 0, option{}, fmt.Errorf("the firmware has no boot option for a disk, only %s", strings.Join(titles, ", "))
	}
	return n, options[n], nil
}

// numbers reads a variable that holds numbers of boot options.
func (f Firmware) numbers(name string) ([]uint16, error) {
	raw, err := efivar.Bytes(efivar.GlobalPath(f.Dir, name))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var out []uint16
	for ; len(raw) >= 2; raw = raw[2:] {
		out = append(out, binary.LittleEndian.Uint16(raw))
	}
	return out, nil
}
