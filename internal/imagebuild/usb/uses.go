package usb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// uses is who uses which block device on this machine.
type uses struct {
	mounts map[string][]string // mount points by device number and by path of the device
	swaps  map[string]bool     // by name
	system map[string]bool     // by name: devices that something mounted lies on, all the way down
}

// uses reads the mounts and swaps of the machine. It sees those of its own mount
// namespace; what others hold is found when the device is opened exclusively.
func (h Host) uses() (uses, error) {
	u := uses{mounts: map[string][]string{}, swaps: map[string]bool{}, system: map[string]bool{}}
	mountinfo, err := os.ReadFile(h.proc("self/mountinfo"))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(mountinfo)) {
		h.mount(u, line)
	}
	swaps, err := os.ReadFile(h.proc("swaps"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without swap has no such file
		return u, err
	}
	for line := range strings.Lines(string(swaps)) {
		if f := strings.Fields(line); len(f) > 0 && strings.HasPrefix(f[0], "/") {
			u.swaps[h.resolve(f[0])] = true
		}
	}
	return u, nil
}

// mount notes a line of mountinfo (proc_pid_mountinfo(5)): the device's number is
// the third field, the mount point the fifth; behind a hyphen stand the type and
// the source. Some file systems (btrfs) have a number of their own: for them the
// source tells.
func (h Host) mount(u uses, line string) {
	before, after, ok := strings.Cut(line, " - ")
	f, g := strings.Fields(before), strings.Fields(after)
	if !ok || len(f) < 5 || len(g) < 2 {
		return
	}
	number, point := f[2], octal(f[4])
	name := ""
	if dir, err := filepath.EvalSymlinks(h.sys("dev/block", number)); err == nil {
		name = filepath.Base(dir)
	} else if source := octal(g[1]); strings.HasPrefix(source, "/") {
		name = h.resolve(source)
	}
	if name == "" {
		return
	}
	u.mounts[name] = append(u.mounts[name], point)
	if systemMount(point) {
		h.markDown(u.system, name, 0)
	}
}

// systemMount reports whether a running system needs what is mounted there.
func systemMount(point string) bool {
	for _, p := range []string{"/", "/usr", "/var", "/boot", "/boot/efi", "/efi", "/home", "/nix", "/sysroot"} {
		if point == p {
			return true
		}
	}
	return false
}

// markDown marks a device and everything below it: the disk of a partition, the
// members of a volume.
func (h Host) markDown(marked map[string]bool, name string, depth int) {
	const deepest = 16
	if marked[name] || depth > deepest {
		return
	}
	marked[name] = true
	dir, err := filepath.EvalSymlinks(h.sys("class/block", name))
	if err != nil {
		return
	}
	if exists(dir, "partition") {
		h.markDown(marked, filepath.Base(filepath.Dir(dir)), depth+1)
	}
	slaves, err := os.ReadDir(filepath.Join(dir, "slaves"))
	if err != nil {
		return
	}
	for _, s := range slaves {
		h.markDown(marked, s.Name(), depth+1)
	}
}

// resolve is the kernel's name of a device path, or "".
func (h Host) resolve(path string) string {
	rel, err := filepath.Rel("/dev", path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return ""
	}
	if real, err := filepath.EvalSymlinks(h.dev(rel)); err == nil {
		return filepath.Base(real)
	}
	return filepath.Base(path)
}

// of lists how one device or partition is in use.
func (u uses) of(name, dir string) []Use {
	var out []Use
	for _, point := range u.mounts[name] {
		out = append(out, Use{Name: name, How: "is mounted on " + point})
	}
	if u.swaps[name] {
		out = append(out, Use{Name: name, How: "is used as swap"})
	}
	holders, err := os.ReadDir(filepath.Join(dir, "holders"))
	if err != nil {
		return out
	}
	for _, h := range holders {
		out = append(out, Use{Name: name, How: "is held by " + h.Name() + " (LVM, LUKS, RAID or the like)"})
	}
	return out
}

// octal decodes \040 and the like.
func octal(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i+3 < len(s) && s[i] == '\\' && isOctal(s[i+1]) && isOctal(s[i+2]) && isOctal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }
