package install_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/slipway/slipway/internal/node/install"
)

// mortal is a disk whose power fails in the middle of its n-th change: half of
// that change arrives, and nothing after it.
type mortal struct {
	install.Disk
	second bool // the second half arrives instead of the first

	mu   sync.Mutex
	left int
	n    int // changes so far
}

var errPower = errors.New("no power")

// alive counts a change; last is true for the one that arrives by half.
func (m *mortal) alive() (alive, last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	m.left--
	return m.left >= 0, m.left == 0
}

func (m *mortal) half(off, n int64) (from, to int64) {
	middle := off + n/2/512*512
	if m.second {
		return middle, off + n
	}
	return off, middle
}

func (m *mortal) WriteAt(p []byte, off int64) (int, error) {
	alive, last := m.alive()
	switch {
	case !alive:
		return 0, errPower
	case last:
		from, to := m.half(off, int64(len(p)))
		_, _ = m.Disk.WriteAt(p[from-off:to-off], from)
		return 0, errPower
	}
	return m.Disk.WriteAt(p, off)
}

func (m *mortal) Zero(off, n int64) error {
	alive, last := m.alive()
	switch {
	case !alive:
		return errPower
	case last:
		from, to := m.half(off, n)
		_ = m.Disk.Zero(from, to-from)
		return errPower
	}
	return m.Disk.Zero(off, n)
}

func (m *mortal) Flush() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left <= 0 {
		return errPower
	}
	return m.Disk.Flush()
}

// changes is how many changes an install makes to its disk.
func changes(t *testing.T) int {
	r := newRig(t)
	m := &mortal{left: 1 << 30}
	r.disks.wrap = func(d install.Disk) install.Disk { m.Disk = d; return m }
	if result := r.run(); result.Err != nil {
		t.Fatal(result.Err)
	}
	return m.n
}

// After a power cut at any change the disk does not boot, or holds the whole image;
// and the next start with the same ticket installs it.
func TestPowerCut(t *testing.T) {
	total := changes(t)
	for n, halves := range map[int]string{1: "a", 2: "b", 3: "a", total / 2: "b", total - 3: "ab", total - 2: "ab", total - 1: "ab", total: "ab"} {
		for _, half := range halves {
			t.Run(fmt.Sprintf("change %d of %d, half %c", n, total, half), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.disks.wrap = func(d install.Disk) install.Disk { return &mortal{Disk: d, left: n, second: half == 'b'} }
				if result := r.run(); result.Err == nil {
					t.Fatal("it did not notice")
				}
				switch {
				case n <= 2:
					// The old content may still be there; nothing of the new is.
				case !r.dead():
					verifyContent(t, r.path(), r.server)
				}
				r.disks.wrap = nil
				if result := r.run(); result.Err != nil {
					t.Fatalf("second start: %v", result.Err)
				}
				r.installed()
			})
		}
	}
}
