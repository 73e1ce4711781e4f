package disk

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
)

const espGUID = "AAAAAAAA-0000-4000-8000-000000000001"

func ours(path, serial, guid string) Disk {
	return Disk{Path: path, Serial: serial, Partitions: []Partition{
		{Number: 1, Name: "slipway-esp", GUID: guid, Path: PartitionPath(path, 1)},
		{Number: 2, Name: "slipway-a", GUID: "A" + guid[1:], Path: PartitionPath(path, 2)},
	}}
}

func TestChoose(t *testing.T) {
	blank := Disk{Path: "/dev/vdb", Serial: "BLANK"}
	foreign := Disk{Path: "/dev/sda", Serial: "FOREIGN", Partitions: []Partition{{Number: 1, Name: "EFI System", GUID: espGUID}}}
	other := ours("/dev/nvme1n1", "OLD", "BBBBBBBB-0000-4000-8000-000000000001")
	mine := ours("/dev/nvme0n1", "MINE", espGUID)
	copied := ours("/dev/sdb", "COPY", espGUID)
	tests := []struct {
		name  string
		disks []Disk
		slot  string
		esp   string
		want  string
		err   []string // words of the error
	}{
		{"by the boot loader's partition", []Disk{blank, other, mine}, "a", espGUID, "/dev/nvme0n1", nil},
		{"the order does not matter", []Disk{mine, other, blank}, "a", espGUID, "/dev/nvme0n1", nil},
		{"letter case of the GUID", []Disk{mine}, "a", strings.ToLower(espGUID), "/dev/nvme0n1", nil},
		{"without a variable, one candidate", []Disk{blank, mine}, "a", "", "/dev/nvme0n1", nil},
		{"without a variable, two candidates", []Disk{mine, other}, "a", "", "", []string{"2 disks", "MINE", "OLD"}},
		{"two with the same GUID", []Disk{mine, copied}, "a", espGUID, "", []string{"2 disks", "serial MINE", "serial COPY"}},
		{"a copy without slots is a candidate too", []Disk{mine, foreign}, "a", espGUID, "", []string{"MINE", "FOREIGN"}},
		{"slot missing on the right disk", []Disk{mine, other}, "b", espGUID, "", []string{"MINE", "no partition slipway-b"}},
		{"started from a disk that is not there", []Disk{other, blank}, "a", espGUID, "", []string{"not found", "OLD", "BLANK"}},
		{"no disk", nil, "a", "", "", []string{"no disk at all"}},
		{"without a variable, nothing of ours", []Disk{blank, foreign}, "a", "", "", []string{"slipway-esp and slipway-a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Choose(tt.disks, tt.slot, tt.esp)
			if got.Path != tt.want || (err == nil) != (tt.err == nil) {
				t.Fatalf("got %q, %v", got.Path, err)
			}
			for _, word := range tt.err {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("error %q does not say %q", err, word)
				}
			}
			if err != nil && diag.HintOf(err) == "" {
				t.Errorf("error %q has no hint", err)
			}
		})
	}
	// Only a missing disk is waited for.
	if _, err := Choose([]Disk{mine, copied}, "a", espGUID); errors.Is(err, ErrNotFound) {
		t.Error("an ambiguous disk counts as one that may still appear")
	}
}

func TestPartitionPath(t *testing.T) {
	for disk, want := range map[string]string{"/dev/vda": "/dev/vda5", "/dev/nvme0n1": "/dev/nvme0n1p5", "/dev/mmcblk0": "/dev/mmcblk0p5"} {
		if got := PartitionPath(disk, 5); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
