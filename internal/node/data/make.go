package data

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	told "github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/diskselect"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/unitname"
)

// begunPath is where the node notes, on state, which blank disks it has begun to
// make. A disk that is noted and not yet kept as one of the node's holds nobody's
// data, in whatever state a power cut left it.
const begunPath = "/var/lib/slipway/data-begun.json"

// World is what this node's data disks are made with.
type World struct {
	Root      string // "/" but in tests
	Disks     func() []machine.Disk
	Partition func(machine.Disk) (device string, err error) // lays a table with one partition
	Format    func(ctx context.Context, device, uuid string) error
	Systemctl func(ctx context.Context, args ...string) error
	Say       func(line string)
}

func (w World) path(name string) string { return filepath.Join(w.Root, name) }

// Settled is an inventory in which disks that this node has begun to make, and not
// finished, count as blank: that is what they were.
func (w World) Settled(disks []machine.Disk) []machine.Disk {
	begun, kept := w.begun(), w.kept()
	out := slices.Clone(disks)
	for i, d := range out {
		done := slices.ContainsFunc(kept.Mounts, func(m told.Mount) bool { return m.Serial == d.ID() })
		if d.ID() != "" && slices.Contains(begun, mark(d)) && !done {
			out[i].Content = nil
		}
	}
	return out
}

// mark names a disk in the note of those that were begun.
func mark(d machine.Disk) string { return fmt.Sprintf("%s %d", d.ID(), d.Size) }

// Make gives the node the wanted data disks and mounts them. All are looked at
// before the first is written; a disk that the node has taken already costs nothing.
func (w World) Make(ctx context.Context, wanted told.Wanted) (told.Data, error) {
	unlock, err := w.lock()
	if err != nil {
		return told.Data{}, err
	}
	defer unlock()
	items, err := plan(w.Settled(w.Disks()), wanted)
	if err != nil {
		return told.Data{}, err
	}
	kept := w.kept()
	for _, it := range items {
		if err := w.free(it, kept); err != nil {
			return told.Data{}, err
		}
	}
	out := told.Data{Format: told.DataFormat, Mounts: []told.Mount{}}
	for _, it := range items {
		m := told.Mount{Name: it.want.Name, Serial: it.disk.ID(), UUID: it.uuid, Path: it.want.Path, Made: madeHere(kept, it)}
		if it.make {
			if m, err = w.make(ctx, it); err != nil {
				return told.Data{}, fmt.Errorf("data disk %s: %w", it.want.Name, err)
			}
		}
		out.Mounts = append(out.Mounts, m)
		if err := w.keep(merge(kept, out)); err != nil {
			return told.Data{}, err
		}
	}
	if err := w.keep(out); err != nil {
		return told.Data{}, err
	}
	if err := w.forget(); err != nil {
		return told.Data{}, err
	}
	return out, w.mount(ctx, &out)
}

// lock keeps a second program from making the same disks. It dies with its process.
func (w World) lock() (unlock func() error, err error) {
	dir := filepath.Dir(w.path(begunPath))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("data disks: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("data disks: %w", err)
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		d.Close()
		return nil, diag.WithHint(errors.New("another program is making data disks on this node"), "wait until it has ended")
	}
	return d.Close, nil
}

func madeHere(kept told.Data, it item) bool {
	return slices.ContainsFunc(kept.Mounts, func(m told.Mount) bool { return m.UUID == it.uuid && m.Made })
}

// merge is what is kept with what is new, by name.
func merge(kept, news told.Data) told.Data {
	for _, m := range kept.Mounts {
		if !slices.ContainsFunc(news.Mounts, func(n told.Mount) bool { return n.Name == m.Name }) {
			news.Mounts = append(slices.Clone(news.Mounts), m)
		}
	}
	return news
}

// free refuses a place that holds files already: a mount would hide them.
func (w World) free(it item, kept told.Data) error {
	if slices.ContainsFunc(kept.Mounts, func(m told.Mount) bool { return m.Path == it.want.Path && w.mounted(m.Path) }) {
		return nil
	}
	entries, err := os.ReadDir(w.path(it.want.Path))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at %s: %w", it.want.Path, err)
	}
	return refused(fmt.Errorf("%s holds files already (%s), and a mount would hide them", it.want.Path, entries[0].Name()),
		"move them away; a mount by hand must be undone, too")
}

func (w World) mounted(at string) bool {
	data, _ := os.ReadFile(w.path("/proc/self/mountinfo"))
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == at {
			return true
		}
	}
	return false
}

// make makes the file system of a blank disk. The UUID is random and the node's own:
// Longhorn names a disk by it, and two disks of one name are one to it.
func (w World) make(ctx context.Context, it item) (told.Mount, error) {
	d := it.disk
	if d.ID() == "" {
		return told.Mount{}, refused(fmt.Errorf("%s has neither serial number nor WWN: after a power cut nobody could tell whether it was begun", diskselect.Describe(d)), "use a disk that says who it is")
	}
	w.Say("making a file system on " + diskselect.Describe(d))
	if err := w.begin(d); err != nil {
		return told.Mount{}, err
	}
	device, err := w.Partition(d)
	if err != nil {
		return told.Mount{}, err
	}
	uuid := newUUID()
	if err := w.Format(ctx, device, uuid); err != nil {
		return told.Mount{}, fmt.Errorf("making a file system on %s: %w", device, err)
	}
	return told.Mount{Name: it.want.Name, Serial: d.ID(), UUID: uuid, Path: it.want.Path, Made: true}, nil
}

// newUUID is a version 4 UUID (RFC 9562).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// mount makes systemd know the mounts and starts them.
func (w World) mount(ctx context.Context, d *told.Data) error {
	if len(d.Mounts) == 0 {
		return nil
	}
	if err := w.Systemctl(ctx, "daemon-reload"); err != nil {
		return fmt.Errorf("telling systemd of the data disks: %w", err)
	}
	for i, m := range d.Mounts {
		if err := w.Systemctl(ctx, "start", unitname.Of(m.Path, "mount")); err != nil {
			return fmt.Errorf("mounting data disk %s at %s: %w", m.Name, m.Path, err)
		}
		if d.Mounts[i].Mounted = w.mounted(m.Path); !d.Mounts[i].Mounted {
			return fmt.Errorf("data disk %s is not mounted at %s, although systemd says so", m.Name, m.Path)
		}
	}
	return nil
}

func (w World) kept() (d told.Data) {
	data, err := os.ReadFile(w.path(told.DataPath))
	if err != nil || json.Unmarshal(data, &d) != nil {
		return told.Data{Format: told.DataFormat}
	}
	return d
}

func (w World) keep(d told.Data) error { return w.write(told.DataPath, d) }

func (w World) begun() (marks []string) {
	data, err := os.ReadFile(w.path(begunPath))
	if err != nil || json.Unmarshal(data, &marks) != nil {
		return nil
	}
	return marks
}

// begin notes that a disk is being made, before its first byte is written.
func (w World) begin(d machine.Disk) error {
	marks := w.begun()
	if slices.Contains(marks, mark(d)) {
		return nil
	}
	return w.write(begunPath, append(marks, mark(d)))
}

// forget ends the note: every disk is made and kept.
func (w World) forget() error {
	if err := os.Remove(w.path(begunPath)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data disks: %w", err)
	}
	return nil
}

func (w World) write(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(w.path(name)), 0o755)
	}
	if err == nil {
		err = renameio.WriteFile(w.path(name), append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
