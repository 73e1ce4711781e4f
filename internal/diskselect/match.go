package diskselect

import (
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

// mismatch says in which fields a disk is not the wanted one; empty means it is.
func mismatch(d machine.Disk, want cluster.Selector) []string {
	var out []string
	no := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	serial := strings.TrimSpace(d.Serial)
	switch wanted := strings.TrimSpace(want.Serial); {
	case wanted == "" || wanted == serial:
	case serial == "":
		no("it has no serial number, wanted is %s", wanted)
	case d.Transport == "virtio" && len(serial) == 20 && strings.HasPrefix(wanted, serial):
		// The serial of a virtio block device has 20 bytes (VIRTIO 1.2, 5.2.6, VIRTIO_BLK_T_GET_ID).
		no("its serial number is %s: virtio cuts serial numbers at 20 characters, so the profile must, too", serial)
	default:
		no("its serial number is %s, wanted is %s", serial, wanted)
	}
	if want.WWN != "" && worldName(want.WWN) != worldName(d.WWN) {
		if d.WWN == "" {
			no("it has no WWN, wanted is %s", want.WWN)
		} else {
			no("its WWN is %s, wanted is %s", d.WWN, want.WWN)
		}
	}
	if want.Model != "" && strings.TrimSpace(want.Model) != strings.TrimSpace(d.Model) {
		no("its model is %q, wanted is %q", d.Model, want.Model)
	}
	if want.MinSize > 0 && d.Size < int64(want.MinSize) {
		no("it has %s, wanted are at least %s", Bytes(d.Size), want.MinSize)
	}
	if want.MaxSize > 0 && d.Size > int64(want.MaxSize) {
		no("it has %s, wanted are at most %s", Bytes(d.Size), want.MaxSize)
	}
	return out
}

// worldName brings a WWN into one form: udev writes naa. names as 0x, sysfs does not.
func worldName(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if rest, found := strings.CutPrefix(s, "naa."); found {
		return "0x" + rest
	}
	return s
}

// unfit says why a disk can be no disk of a node, whoever names it.
func unfit(d machine.Disk) []string {
	var out []string
	if d.Boot {
		out = append(out, "the machine was started from it")
	}
	if d.Transport == "usb" {
		out = append(out, "it is attached by USB")
	}
	if d.Removable {
		out = append(out, "it is removable")
	}
	if d.Size <= 0 {
		out = append(out, "its size is not known or there is no medium in it")
	}
	return out
}

// doubtful says why what identifies a disk identifies nothing, or several.
func doubtful(d machine.Disk, want cluster.Selector, all []machine.Disk) []string {
	var out []string
	if want.Serial != "" {
		if why := machine.Junk(d.Serial); why != "" {
			out = append(out, "its serial number identifies nothing: "+why)
		}
	}
	for _, other := range all {
		if same(d, other) {
			continue
		}
		if s := strings.TrimSpace(d.Serial); want.Serial != "" && s == strings.TrimSpace(other.Serial) {
			out = append(out, fmt.Sprintf("%s has the same serial number", other.Name))
		}
		if want.WWN != "" && worldName(d.WWN) == worldName(other.WWN) {
			out = append(out, fmt.Sprintf("%s has the same WWN", other.Name))
		}
	}
	return out
}

// same reports whether two entries of one inventory are the same device.
func same(a, b machine.Disk) bool { return a.Name == b.Name }
