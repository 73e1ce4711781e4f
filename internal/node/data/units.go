package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	told "github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/node/unitname"
)

// GeneratorName is the name under which systemd starts this program for Generate
// (systemd.generator(7)).
const GeneratorName = "slipway-data"

// Generate writes the units of the kept data disks into a directory of systemd's:
// the mounts, and what makes k3s wait for them. It runs at each boot and reload.
func Generate(root, dir string) error {
	data, err := os.ReadFile(filepath.Join(root, told.DataPath))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var kept told.Data
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", told.DataPath, err)
	}
	for name, text := range units(kept) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// units are the units of data disks, by file name.
func units(d told.Data) map[string]string {
	out := map[string]string{}
	var paths []string
	for _, m := range d.Mounts {
		device := "/dev/disk/by-uuid/" + m.UUID
		out[unitname.Of(m.Path, "mount")] = fmt.Sprintf(mountUnit, m.Name, m.Serial, fsck(device), device, m.Path)
		paths = append(paths, m.Path)
	}
	if len(paths) == 0 {
		return out
	}
	for _, service := range []string{"k3s.service", "k3s-agent.service"} {
		out[service+".d/50-slipway-data.conf"] = fmt.Sprintf(waitForData, strings.Join(paths, " "))
	}
	return out
}

// The mount is no part of local-fs.target: a node whose data disk is dead must
// still start and be reached. k3s requires it and does not start without.
const mountUnit = `[Unit]
Description=Slipway: data disk %s, serial %s
DefaultDependencies=no
Conflicts=umount.target
Before=umount.target
Requires=%[3]s
After=%[3]s

[Mount]
What=%[4]s
Where=%[5]s
Type=auto
Options=noatime,nodev
`

// Pods would write to the system's disk when their data disk is not there, and
// Longhorn would take the empty directory for an empty disk.
const waitForData = `[Unit]
RequiresMountsFor=%s
`

func fsck(device string) string { return "systemd-fsck@" + unitname.Of(device, "service") }
