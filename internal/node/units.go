package node

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/node/persist"
	"github.com/slipway/slipway/internal/node/unitname"
)

// unitDir holds the units of this boot: systemd reads it, and it is gone with the boot.
const unitDir = "/run/systemd/system"

// writeUnits writes what systemd must know of mounts that it did not make itself.
func (b *boot) writeUnits() error {
	files := map[string]string{}
	for _, e := range persist.Table() {
		if e.Kind != persist.File {
			files[unitname.Of(e.Path, "mount")+".d/50-slipway.conf"] = keepMounted
		}
	}
	files[unitname.Of(stateDir, "mount")+".d/50-slipway.conf"] = keepMounted
	if b.record.ESP != "" {
		files["efi.mount"] = fmt.Sprintf(espMount, "systemd-fsck@"+unitname.Of(b.record.ESP, "service"), b.record.ESP)
		files["efi.automount"] = espAutomount
	}
	for name, text := range files {
		path := filepath.Join(unitDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if err := markUpdated(); err != nil {
		return err
	}
	if b.record.ESP == "" {
		return nil
	}
	return enable("efi.automount", "local-fs.target")
}

// markUpdated tells systemd that /etc and /var fit the slot's /usr, which they do:
// otherwise the new /etc of every boot makes it rebuild the linker cache, the
// hardware database and the message catalogue (ConditionNeedsUpdate=).
func markUpdated() error {
	usr, err := os.Stat(filepath.Join(rootDir, "usr"))
	if err != nil {
		return fmt.Errorf("marking /etc as current: %w", err)
	}
	for _, dir := range []string{"etc", "var"} {
		path := filepath.Join(rootDir, dir, ".updated")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return fmt.Errorf("marking /%s as current: %w", dir, err)
		}
		if err := os.Chtimes(path, usr.ModTime(), usr.ModTime()); err != nil {
			return fmt.Errorf("marking /%s as current: %w", dir, err)
		}
	}
	return nil
}

func enable(unit, target string) error {
	dir := filepath.Join(unitDir, target+".wants")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("enabling %s: %w", unit, err)
	}
	if err := os.Symlink(filepath.Join(unitDir, unit), filepath.Join(dir, unit)); err != nil && !os.IsExist(err) {
		return fmt.Errorf("enabling %s: %w", unit, err)
	}
	return nil
}

// keepMounted takes a mount out of the usual order of stopping: /etc and /var are
// in use until the very end, and systemd's last step unmounts them.
const keepMounted = `[Unit]
DefaultDependencies=no
`

// The EFI system partition is mounted when somebody looks at it, and not for
// longer: FAT has no journal, and a power cut while it is mounted leaves it dirty.
// Linux then keeps the mark for ever, so it is checked before it is mounted.
const espMount = `[Unit]
Description=EFI System Partition
DefaultDependencies=no
Requires=%[1]s
After=%[1]s
Conflicts=umount.target
Before=umount.target

[Mount]
What=%[2]s
Where=/efi
Type=vfat
Options=umask=0077,noexec,nosuid,nodev
`

const espAutomount = `[Unit]
Description=EFI System Partition, when needed
DefaultDependencies=no
Conflicts=umount.target
Before=umount.target

[Automount]
Where=/efi
TimeoutIdleSec=2min
`
