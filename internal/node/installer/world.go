package installer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/console"
	"github.com/slipway/slipway/internal/node/install"
	"github.com/slipway/slipway/internal/node/install/blockdev"
	"github.com/slipway/slipway/internal/node/install/sanitize"
	"github.com/slipway/slipway/internal/node/inventory"
)

// screen is all consoles: lines that stay, and one that is written over.
type screen struct {
	consoles *console.Consoles

	mu   sync.Mutex
	last int // length of the status line that shows, 0 for none
}

// Say implements install.Screen.
func (s *screen) Say(line string) {
	if line == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	s.consoles.Tell(line + "\n")
}

// Status implements install.Screen.
func (s *screen) Status(line string) {
	const width = 79
	line = line[:min(len(line), width)]
	s.mu.Lock()
	defer s.mu.Unlock()
	pad := strings.Repeat(" ", max(s.last-len(line), 0))
	s.consoles.Tell("\r" + line + pad)
	s.last = len(line)
}

// wipe makes room for a line that stays.
func (s *screen) wipe() {
	if s.last > 0 {
		s.consoles.Tell("\n")
		s.last = 0
	}
}

// clock is the machine's clock.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) Set(t time.Time) error {
	ts := unix.NsecToTimespec(t.UnixNano())
	return unix.ClockSettime(unix.CLOCK_REALTIME, &ts)
}

// random is the kernel's randomness.
type random struct{}

func (random) Read(p []byte) (int, error) { return rand.Read(p) }

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// disks are the disks of this machine.
type disks struct{ app *app }

// Open implements install.Disks. Between the report and now somebody may have
// pulled a disk and the kernel may have given its name to another.
func (d disks) Open(want machine.Disk) (install.Disk, error) {
	for _, now := range inventory.Disks(os.DirFS("/sys")) {
		if now.Name == want.Name && (now.Serial != want.Serial || now.WWN != want.WWN || now.Size != want.Size) {
			return nil, fmt.Errorf("%s is another disk than a moment ago", want.Name)
		}
	}
	dev, err := blockdev.Open("/dev/" + want.Name)
	if errors.Is(err, unix.EBUSY) {
		return nil, errors.New("somebody uses it")
	}
	if err != nil {
		return nil, err
	}
	if dev.Size() != want.Size {
		return nil, errors.Join(fmt.Errorf("%s has %d bytes, it was reported with %d", want.Name, dev.Size(), want.Size), dev.Close())
	}
	return dev, nil
}

// Sanitize implements install.Disks.
func (d disks) Sanitize(ctx context.Context, opened install.Disk, m machine.Disk, how machine.Sanitize) (string, error) {
	dev, ok := opened.(*blockdev.Device)
	if !ok {
		return "", errors.New("not a block device")
	}
	r := sanitize.Request{How: how, Size: m.Size, Say: d.app.screen.Say, Sleep: pause}
	switch m.Transport {
	case "nvme":
		r.NVMe = sanitize.Device{Fd: dev.Fd()}
	case "sata":
		r.ATA = sanitize.Device{Fd: dev.Fd()}
	}
	return sanitize.Run(ctx, dev, r)
}
