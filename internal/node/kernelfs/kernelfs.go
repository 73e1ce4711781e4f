// Package kernelfs mounts the kernel's own file systems, which the first program
// of an initramfs does not find mounted.
package kernelfs

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Mount mounts /proc, /sys, /dev and /run. What is mounted stays as it is.
func Mount() error {
	mounts := []struct {
		at, kind string
		flags    uintptr
		data     string
	}{
		{"/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"/sys", "sysfs", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"/dev", "devtmpfs", unix.MS_NOSUID, "mode=0755"},
		{"/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=0755,size=20%"},
	}
	for _, m := range mounts {
		if Mounted(m.at) {
			continue
		}
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return fmt.Errorf("making %s: %w", m.at, err)
		}
		if err := unix.Mount(m.kind, m.at, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting %s: %w", m.at, err)
		}
	}
	return nil
}

// Mounted reports whether something is mounted on a directory.
func Mounted(dir string) bool {
	var here, parent unix.Stat_t
	if unix.Stat(dir, &here) != nil || unix.Stat(filepath.Dir(dir), &parent) != nil {
		return false
	}
	return here.Dev != parent.Dev
}
