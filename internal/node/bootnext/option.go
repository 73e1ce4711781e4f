package bootnext

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// option is a boot option of the firmware, as far as it matters here.
type option struct {
	active bool
	title  string
	path   []node
}

// node is one node of a device path (UEFI specification, section 10.3).
type node struct {
	kind, sub byte
	data      []byte
}

// Kinds of device path nodes, and what of them cannot be a disk of the machine.
const (
	kindHardware  = 1
	kindACPI      = 2
	kindMessaging = 3
	kindMedia     = 4
	kindEnd       = 0x7f

	mediaHardDrive = 1
)

// foreign are nodes of what is no disk in the machine: USB (port, class, WWID),
// network (MAC, IPv4, IPv6, URI), optical discs, and programs of the firmware itself.
func foreign(n node) bool {
	switch n.kind {
	case kindHardware, kindACPI:
		return false
	case kindMessaging:
		return slices.Contains([]byte{5, 15, 16, 11, 12, 13, 24}, n.sub)
	case kindMedia:
		return slices.Contains([]byte{2, 6, 7}, n.sub)
	}
	return true
}

// parse reads an EFI_LOAD_OPTION (UEFI specification, section 3.1.3).
func parse(raw []byte) (option, error) {
	if len(raw) < 6 {
		return option{}, errors.New("too short")
	}
	const active = 1
	o := option{active: binary.LittleEndian.Uint32(raw)&active != 0}
	length := int(binary.LittleEndian.Uint16(raw[4:]))
	rest := raw[6:]
	var title []uint16
	for {
		if len(rest) < 2 {
			return option{}, errors.New("its title has no end")
		}
		c := binary.LittleEndian.Uint16(rest)
		if rest = rest[2:]; c == 0 {
			break
		}
		title = append(title, c)
	}
	o.title = string(utf16.Decode(title))
	if len(rest) < length {
		return option{}, errors.New("its device path is cut off")
	}
	var err error
	o.path, err = parsePath(rest[:length])
	return o, err
}

// parsePath reads the first device path of a list.
func parsePath(raw []byte) ([]node, error) {
	var out []node
	for {
		if len(raw) < 4 {
			return nil, errors.New("its device path has no end")
		}
		length := int(binary.LittleEndian.Uint16(raw[2:]))
		if length < 4 || length > len(raw) {
			return nil, errors.New("its device path is damaged")
		}
		if raw[0] == kindEnd {
			return out, nil
		}
		out = append(out, node{raw[0], raw[1], raw[4:length]})
		raw = raw[length:]
	}
}

// disk reports whether an option starts a disk of this machine. A path that begins
// with a partition, as operating systems enter it, counts when the partition is
// there: firmware keeps the entries of systems that were overwritten.
func (o option) disk(partitions []string) bool {
	if !o.active || len(o.path) == 0 || slices.ContainsFunc(o.path, foreign) {
		return false
	}
	first := o.path[0]
	if first.kind != kindMedia {
		return true
	}
	return first.sub == mediaHardDrive && slices.ContainsFunc(partitions, func(g string) bool { return strings.EqualFold(g, first.guid()) })
}

// guid is the GUID of a hard drive node's partition: 16 bytes behind number, start
// and size, in the mixed byte order of GUIDs.
func (n node) guid() string {
	const at, end = 20, 36
	if len(n.data) < end {
		return ""
	}
	b, le := n.data[at:end], binary.LittleEndian
	return fmt.Sprintf("%08X-%04X-%04X-%X-%X", le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:])
}

// choose takes the first disk of the boot order behind the option that was booted,
// or before it: firmware begins with what was plugged in last.
func choose(current uint16, order []uint16, options map[uint16]option, partitions []string) (uint16, bool) {
	at := slices.Index(order, current) + 1
	for _, n := range append(slices.Clone(order[at:]), order[:at]...) {
		if o, ok := options[n]; ok && n != current && o.disk(partitions) {
			return n, true
		}
	}
	return 0, false
}
