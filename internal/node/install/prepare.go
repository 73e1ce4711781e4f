package install

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway/slipway/internal/diskselect"
	"github.com/slipway/slipway/internal/machine"
)

// open takes the disk for this install alone.
func (r *run) open(context.Context) error {
	opened, err := r.disks.Open(r.choice.System)
	if err != nil {
		return refuse("%s cannot be opened: %v", diskselect.Describe(r.choice.System), err)
	}
	r.disk = opened
	return nil
}

// sanitize destroys the old content, when that was asked for.
func (r *run) sanitize(ctx context.Context) error {
	if r.ticket.Sanitize == machine.SanitizeNone {
		return nil
	}
	r.receipt.Written = true
	r.env.Screen.Say("destroying the old content of " + diskselect.Describe(r.choice.System))
	done, err := r.disks.Sanitize(ctx, r.disk, r.choice.System, r.ticket.Sanitize)
	r.receipt.Sanitized = done
	if err != nil {
		return err
	}
	r.env.Screen.Say("old content: " + done)
	return nil
}

// clearEnds makes both ends of the disk zero. What lies there is how firmware
// finds something to boot and how kernels find members of RAID, ZFS and LVM.
func (r *run) clearEnds(context.Context) error {
	r.receipt.Written = true
	return r.clear(r.disk, r.choice.System.Size)
}

// clear makes the start of a disk zero, as far as the image's first chunk and the
// margin reach, and the margin at its end.
func (r *run) clear(d Disk, size int64) error {
	n := min(max(margin, int64(len(r.head))), size)
	if err := d.Zero(0, n); err != nil {
		return fmt.Errorf("clearing the start of the disk: %w", err)
	}
	if err := d.Zero(size-min(margin, size), min(margin, size)); err != nil {
		return fmt.Errorf("clearing the end of the disk: %w", err)
	}
	return d.Flush()
}

// margin is how much of each end of a disk is cleared, bytes. ZFS keeps half a
// megabyte of labels there, mdraid and GPT less.
const margin = 1 << 20

// wipeData clears data disks that shall be made anew. Those that are kept are not
// even opened.
func (r *run) wipeData(context.Context) error {
	for _, c := range r.choice.Data {
		if c.Action == diskselect.Wipe {
			if err := r.wipe(c); err != nil {
				return fmt.Errorf("data disk %s: %w", c.Name, err)
			}
		}
		r.receipt.Data = append(r.receipt.Data, machine.DataResult{Name: c.Name, Serial: c.Disk.Serial, Action: string(c.Action)})
	}
	return nil
}

// wipe clears the disk's ends and those of every partition that it has: a new
// table often puts its first partition where the old one was, and the old file
// system would be back.
func (r *run) wipe(c diskselect.DataChoice) (err error) {
	d, err := r.disks.Open(c.Disk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for _, s := range partitions(d, c.Disk.Sector) {
		if s[0] < 0 || s[1] > c.Disk.Size || s[1]-s[0] < margin {
			continue
		}
		if err := errors.Join(d.Zero(s[0], margin), d.Zero(s[1]-margin, margin)); err != nil {
			return err
		}
	}
	return r.clear(d, c.Disk.Size)
}
