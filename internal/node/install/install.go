// Package install images one machine: it takes the orders from pxed or from a
// stick, chooses the disk, writes the image with every chunk checked before it
// touches the disk, reads everything back, and gives a receipt. Until the last
// step nothing on the disk can boot, so a machine that lost power in the middle
// starts over.
package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/diskselect"
	"github.com/slipway/slipway/internal/machine"
)

// Env is the world around an install.
type Env struct {
	Screen   Screen
	Clock    Clock
	Sleep    func(context.Context, time.Duration) error
	Random   io.Reader
	Patience Patience
	Workers  int    // how many chunks are checked and written at a time
	Home     string // base URL of who wants to hear when the node is ready; "" for nobody
}

// Screen is what a person before the machine sees.
type Screen interface {
	Say(line string)    // stays
	Status(line string) // replaces the one before
}

// Clock is the clock of the machine.
type Clock interface {
	Now() time.Time
	Set(t time.Time) error
}

// Disk is a disk that was opened for writing, and by nobody else. Offsets and
// lengths are multiples of the sector size. Reads come from the disk itself, not
// from a cache of the kernel.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Zero(offset, length int64) error // makes a range zero, in the quickest way the disk has
	Flush() error                    // returns when a loss of power no longer matters
}

// Disks gives access to the disks of the machine.
type Disks interface {
	// Open fails when the disk is in use, or not the one that was reported.
	Open(d machine.Disk) (Disk, error)
	// Sanitize destroys the old content of a disk that was opened, and says in
	// words what was done.
	Sanitize(ctx context.Context, opened Disk, d machine.Disk, how machine.Sanitize) (string, error)
}

// Refused is the error for an install that was refused before anything was
// written.
type Refused struct{ Reasons []string }

func (r *Refused) Error() string {
	switch more := len(r.Reasons) - 1; more {
	case 0:
		return r.Reasons[0]
	case 1:
		return r.Reasons[0] + " (and another reason)"
	default:
		return fmt.Sprintf("%s (and %d more reasons)", r.Reasons[0], more)
	}
}

func refuse(format string, args ...any) error {
	return &Refused{Reasons: []string{fmt.Sprintf(format, args...)}}
}

// Result is how an install ended.
type Result struct {
	Reply        machine.Reply   // what the other side wanted, when it was not an install
	Receipt      machine.Receipt // what was said about it; its Error is Err in words
	Acknowledged bool            // the other side has the receipt
	Err          error
}

// run is one install under way.
type run struct {
	env    Env
	source Source
	disks  Disks
	report machine.Report
	meter  *meter

	reply   machine.Reply
	ticket  machine.Ticket
	index   artifact.Index
	choice  diskselect.Choice
	seed    patch
	head    []byte // the first chunk as it will be on the disk
	tail    []byte // the backup partition table
	disk    Disk
	want    []digest.Digest // of each chunk as it will be on the disk
	receipt machine.Receipt
}

// step is one step of an install. doing completes "while ...".
type step struct {
	name  string
	doing string
	stage machine.Stage
	do    func(*run, context.Context) error
}

// steps is the order of an install, and the reason for each place in it. Whatever
// can be refused is refused before "open"; what makes the disk boot comes last.
func steps() []step {
	return []step{
		// Nobody is asked for anything before it is known who asks.
		{"report", "reporting this machine", machine.StageInventory, (*run).sendReport},
		{"ticket", "fetching the ticket", machine.StageInventory, (*run).fetchTicket},
		// The ticket names the index and the key that must have signed it.
		{"index", "checking the index of the image", machine.StageInventory, (*run).fetchIndex},
		{"select", "choosing the disk", machine.StageSelect, (*run).selectDisks},
		{"seed", "fetching the seed", machine.StageSelect, (*run).fetchSeed},
		// The first chunk holds the partition table: whether it can be fitted
		// to the disk is known before anything is lost.
		{"head", "fetching the partition table", machine.StageSelect, (*run).fetchHead},
		{"open", "opening the disk", machine.StageSelect, (*run).open},
		// From here on the old content is lost.
		{"sanitize", "destroying the old content", machine.StageSanitize, (*run).sanitize},
		// Before the first chunk: a disk that is cut off in the middle must not
		// boot its old system with the new one's data, nor be taken for a RAID.
		{"clear", "clearing both ends of the disk", machine.StageSanitize, (*run).clearEnds},
		{"data", "clearing data disks", machine.StageSanitize, (*run).wipeData},
		{"write", "writing the image", machine.StageWrite, (*run).write},
		// The seed was written with the image's chunks; from here on the disk
		// itself is believed, and nothing else.
		{"read back", "reading back the image", machine.StageReadBack, (*run).readBack},
		// A ticket that was withdrawn meanwhile must not make a node.
		{"still valid", "asking whether the ticket is still valid", machine.StageReadBack, (*run).confirm},
		{"commit", "making the disk bootable", machine.StageReadBack, (*run).commit},
	}
}

// Run installs this machine and gives the receipt.
func Run(ctx context.Context, env Env, source Source, disks Disks, report machine.Report) Result {
	r := &run{env: env, source: source, disks: disks, report: report}
	r.receipt = machine.Receipt{Format: machine.ReceiptFormat, Identity: report.Identity, Started: env.Clock.Now()}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.meter = newMeter(env, source, cancel)
	err := r.steps(ctx)
	r.meter.stop()
	if r.disk != nil {
		err = errors.Join(err, r.disk.Close())
	}
	if errors.Is(err, errNotNow) {
		return Result{Reply: r.reply}
	}
	return r.finish(ctx, err)
}

func (r *run) steps(ctx context.Context) error {
	for _, s := range steps() {
		r.meter.stage(s.stage)
		if err := s.do(r, ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
				err = cause
			}
			return fmt.Errorf("while %s: %w", s.doing, err)
		}
	}
	return nil
}

// errNotNow ends an install that nobody wants.
var errNotNow = errors.New("no install was ordered")

// words is an error with its hint, for a receipt.
func words(err error) string {
	if hint := diag.HintOf(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}
