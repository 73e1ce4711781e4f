package diskselect

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/machine"
)

func TestRunning(t *testing.T) {
	boot := with(system(nvme("nvme0n1", "BOOT", 500*gb)), func(d *machine.Disk) { d.Boot, d.Busy = true, "/run/slipway/state" })
	fresh, used := nvme("nvme1n1", "DATA", 1000*gb), with(longhorn(nvme("nvme1n1", "DATA", 1000*gb)), func(d *machine.Disk) { d.Busy = "/var/lib/longhorn/data" })
	order := []machine.DataOrder{wipe("data", bySerial("DATA"))}
	for _, c := range []struct {
		name  string
		disks []machine.Disk
		blank bool
		want  string // of the refusal
	}{
		{"blank, to be made", []machine.Disk{boot, fresh}, true, ""},
		{"in use, kept whatever the install's policy", []machine.Disk{used, boot}, false, ""},
		{"absent", []machine.Disk{boot}, false, "data disk data: there is no such disk (wanted: serial DATA)"},
		{"somebody else's", []machine.Disk{boot, windows(fresh)}, false, "is not Slipway's"},
		{"one file system over the whole disk", []machine.Disk{boot, with(fresh, func(d *machine.Disk) { d.Content = []machine.Signature{{Type: "xfs", Label: "mine"}} })}, false, "is not Slipway's: xfs \"mine\""},
		{"the system disk", []machine.Disk{with(boot, func(d *machine.Disk) { d.Serial = "DATA" })}, false, "the machine was started from it"},
		{"a stick of that number", []machine.Disk{boot, with(fresh, func(d *machine.Disk) { d.Transport = "usb" })}, false, "it is attached by USB"},
		{"two of that number", []machine.Disk{boot, fresh, nvme("nvme2n1", "DATA", 1000*gb)}, false, "data disk data"},
	} {
		got, err := Running(c.disks, order)
		if c.want != "" {
			var no *Error
			if !errors.As(err, &no) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || len(got) != 1 || got[0].Action != Keep || got[0].Disk.Name != "nvme1n1" || got[0].Blank() != c.blank {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}
