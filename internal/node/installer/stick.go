package installer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/diskselect"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/disk"
	"github.com/slipway/slipway/internal/node/install"
	"github.com/slipway/slipway/internal/node/install/bundle"
	"github.com/slipway/slipway/internal/node/inventory"
)

// stickDir is where the stick is mounted, and stickWait how long one may take to
// appear: hubs and card readers need several seconds.
const (
	stickDir  = "/run/slipway/stick"
	stickWait = 30 * time.Second
)

// fromStick installs from the bundle on the stick that the machine was started from.
func (a *app) fromStick(ctx context.Context) ending {
	found, err := a.findStick(ctx)
	if err != nil {
		return failed(err)
	}
	a.stick = found.Name
	if err := mountStick(found.path); err != nil {
		return failed(err)
	}
	defer func() {
		if err := unix.Unmount(stickDir, 0); err != nil {
			a.screen.Say(fmt.Sprintf("unmounting the stick: %v", err))
		}
	}()
	source, err := bundle.Open(stickDir, time.Now)
	if err != nil {
		return failed(err)
	}
	defer source.Close()
	result := install.Run(ctx, a.env(), source, disks{a}, a.look(found.Name))
	if result.Acknowledged {
		a.screen.Say("the receipt is on the stick")
	}
	return endingOf(result, true)
}

// carrier is a disk with a bundle on it.
type carrier struct {
	machine.Disk
	path string // of the partition
}

func (a *app) findStick(ctx context.Context) (carrier, error) {
	a.screen.Say("looking for the stick with the image")
	var disks []machine.Disk
	for deadline := time.Now().Add(stickWait); time.Now().Before(deadline); {
		a.loadDrivers()
		disks = inventory.Take(a.sources("")).Disks
		switch found := carriers(disks); len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return carrier{}, fmt.Errorf("two disks hold an installer: %s and %s", diskselect.Describe(found[0].Disk), diskselect.Describe(found[1].Disk))
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return carrier{}, err
		}
	}
	var seen []string
	for _, d := range disks {
		seen = append(seen, diskselect.Describe(d))
	}
	return carrier{}, diag.WithHint(fmt.Errorf("no disk has a partition %s; seen: %s", bundle.Label, strings.Join(seen, ", ")),
		"is the stick still plugged in? try another socket, directly at the machine")
}

// carriers are the disks that have a partition or file system with the label.
func carriers(disks []machine.Disk) []carrier {
	var out []carrier
	for _, d := range disks {
		for _, s := range d.Content {
			if !strings.EqualFold(s.Label, bundle.Label) {
				continue
			}
			c := carrier{d, "/dev/" + d.Name}
			if s.Partition > 0 {
				c.path = disk.PartitionPath(c.path, s.Partition)
			}
			out = append(out, c)
			break // name and label of one partition
		}
	}
	return out
}

func mountStick(path string) error {
	if err := os.MkdirAll(stickDir, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, kind := range []string{"vfat", "ext4"} {
		err := unix.Mount(path, stickDir, kind, unix.MS_NOATIME|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", kind, err))
	}
	return fmt.Errorf("mounting %s: %w", path, errors.Join(errs...))
}
