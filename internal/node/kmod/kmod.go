// Package kmod loads the kernel modules that the initramfs carries: those that
// every boot needs by name, drivers for what is plugged in by alias.
package kmod

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/u-root/u-root/pkg/kmodule"
	"golang.org/x/sys/unix"
)

// Always are the modules that a boot needs on every machine. Drivers of the disks
// that virtual machines and current mini-PCs have are among them because looking
// them up by alias takes longer than loading them. cpuinfo is the text of
// /proc/cpuinfo.
func Always(cpuinfo string) []string {
	names := []string{"virtio_pci", "virtio_blk", "nvme", "efivarfs"}
	if !strings.Contains(cpuinfo, "QEMU TCG CPU") {
		// Before verity, which stays with the implementation it finds first. An
		// emulated processor takes twice as long with vector instructions.
		names = append(names, "sha256_ssse3")
	}
	return append(names, "dm-verity", "squashfs", "overlay", "ext4", "vfat", "nls_cp437", "nls_ascii", "virtio_rng")
}

// Loader loads modules from a directory such as /lib/modules/<release>.
type Loader struct {
	dir    string
	prober *kmodule.Prober
	files  []string            // modules, relative to dir
	before map[string][]string // what a module wants to have loaded before, though it does not need its symbols
	loaded map[string]bool
}

// New prepares a loader for the running kernel.
func New() (*Loader, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return nil, fmt.Errorf("asking the kernel for its release: %w", err)
	}
	release := unix.ByteSliceToString(uts.Release[:])
	// Loaded modules are not looked up: a second load of the same one is harmless.
	prober, err := kmodule.NewProber(kmodule.ProbeOpts{KVer: release, IgnoreProcMods: true})
	if err != nil {
		return nil, fmt.Errorf("reading the modules of kernel %s: %w", release, err)
	}
	dir := filepath.Join("/lib/modules", release)
	deps, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("reading the modules of kernel %s: %w", release, err)
	}
	soft, err := os.ReadFile(filepath.Join(dir, "modules.softdep"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the modules of kernel %s: %w", release, err)
	}
	return &Loader{dir: dir, prober: prober, files: moduleFiles(string(deps)), before: softDeps(string(soft)), loaded: map[string]bool{}}, nil
}

// softDeps reads the lines "softdep NAME pre: MODULE..." that the initramfs has.
func softDeps(text string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 3 && f[0] == "softdep" && f[2] == "pre:" {
			out[f[1]] = f[3:]
		}
	}
	return out
}

// Load loads modules by name and returns an error for each that did not load.
// A module that is not there may be built into the kernel; what really is
// missing shows when it is used, in the words of that step.
func (l *Loader) Load(names ...string) []error {
	var errs []error
	for _, name := range names {
		if l.loaded[name] || !l.has(name) {
			continue
		}
		l.loaded[name] = true // also while others are loaded before: they may want each other
		// One that does not load is for another processor; if none does, the module
		// itself will say what it lacks.
		_ = l.Load(l.before[canonical(name)]...)
		err := l.prober.Probe(name, "")
		if err == nil {
			continue
		}
		delete(l.loaded, name)
		if !errors.Is(err, unix.ENODEV) { // made for another processor
			errs = append(errs, fmt.Errorf("loading kernel module %s: %w", name, err))
		}
	}
	return errs
}

func (l *Loader) has(name string) bool {
	for _, file := range l.files {
		if moduleName(file) == canonical(name) {
			return true
		}
	}
	return false
}

// LoadDrivers loads a driver for every device that has one in the initramfs, and
// returns the names of those it loaded. New devices appear behind new drivers (a
// disk behind its controller), so callers repeat it until nothing is loaded. Only
// modules whose name begins with prefix are considered.
func (l *Loader) LoadDrivers(prefix string) []string {
	aliases := l.aliases(prefix)
	var loaded []string
	for _, device := range modaliases("/sys/devices") {
		for name, patterns := range aliases {
			if l.loaded[name] || !matches(patterns, device) {
				continue
			}
			if len(l.Load(name)) == 0 {
				loaded = append(loaded, name)
			}
			// A driver that does not load now will not load later either.
			l.loaded[name] = true
		}
	}
	return loaded
}

// aliases maps modules of the initramfs to what they say they drive.
func (l *Loader) aliases(prefix string) map[string][]string {
	found := map[string][]string{}
	for _, file := range l.files {
		if !strings.HasPrefix(moduleName(file), prefix) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(l.dir, file))
		if err == nil {
			found[moduleName(file)] = Aliases(data)
		}
	}
	return found
}

// moduleFiles returns the paths of the modules in the text of modules.dep.
func moduleFiles(deps string) []string {
	var files []string
	for line := range strings.Lines(deps) {
		if file, _, ok := strings.Cut(line, ":"); ok {
			files = append(files, file)
		}
	}
	return files
}

// Aliases returns the device patterns in a module file. They stand as
// NUL-terminated "alias=..." strings in the section .modinfo.
func Aliases(module []byte) []string {
	var patterns []string
	for _, s := range bytes.Split(module, []byte{0}) {
		if p, ok := bytes.CutPrefix(s, []byte("alias=")); ok && bytes.IndexByte(p, ':') > 0 {
			patterns = append(patterns, string(p))
		}
	}
	return patterns
}

func matches(patterns []string, device string) bool {
	for _, p := range patterns {
		// Module aliases use *, ? and [] like file name patterns, and hold no slash.
		if ok, err := path.Match(p, device); err == nil && ok {
			return true
		}
	}
	return false
}

// modaliases are the names by which the devices under root ask for a driver.
func modaliases(root string) []string {
	var found []string
	_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "modalias" {
			if data, err := os.ReadFile(p); err == nil {
				found = append(found, strings.TrimSpace(string(data)))
			}
		}
		return nil
	})
	return found
}

func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return canonical(name)
}

func canonical(name string) string { return strings.ReplaceAll(name, "-", "_") }
