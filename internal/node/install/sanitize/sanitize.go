// Package sanitize destroys the old content of a disk: by the disk's own command
// where it has one that is safe to use, then by discarding, then by zeros. It says
// what was done, as these are not worth the same.
package sanitize

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

// Disk is a disk that is open for writing.
type Disk interface {
	Zero(offset, length int64) error
	Discard(offset, length int64) error
	Flush() error
}

// Request says what is wanted.
type Request struct {
	How   machine.Sanitize
	Size  int64 // bytes
	Say   func(string)
	Sleep func(context.Context, time.Duration) error

	// NVMe and ATA are the disk's own commands, nil when it has not that kind.
	NVMe NVMe
	ATA  ATA
}

// piece is how much is discarded or zeroed at a time, bytes: the kernel cannot be
// interrupted within one.
const piece = 1 << 30

// Run destroys the content, and says in words what was done.
func Run(ctx context.Context, d Disk, r Request) (string, error) {
	switch r.How {
	case machine.SanitizeZero:
		return zero(ctx, d, r)
	case machine.SanitizeAuto, machine.SanitizeDiscard:
		if done, err := own(ctx, r); done != "" || err != nil {
			return done, err
		}
		err := pieces(ctx, r, "discarding", d.Discard)
		if err == nil {
			return "all blocks were discarded (the disk may keep them for a while)", d.Flush()
		}
		if ctx.Err() != nil {
			return "", err
		}
		r.Say(fmt.Sprintf("the disk does not discard (%v), writing zeros", err))
		return zero(ctx, d, r)
	}
	return "", fmt.Errorf("%q is no way to destroy content", r.How)
}

// own uses the disk's own commands. Nothing done and no error means that it has none.
func own(ctx context.Context, r Request) (string, error) {
	var done string
	var err error
	switch {
	case r.How != machine.SanitizeAuto:
		return "", nil
	case r.NVMe != nil:
		done, err = nvme(ctx, r.NVMe, r.Say, r.Sleep)
	case r.ATA != nil:
		done, err = ata(ctx, r.ATA, r.Say, r.Sleep)
	default:
		return "", nil
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		r.Say(fmt.Sprintf("the disk does not erase itself (%v), discarding instead", err))
		return "", nil
	}
	return done, nil
}

func zero(ctx context.Context, d Disk, r Request) (string, error) {
	if err := pieces(ctx, r, "writing zeros", d.Zero); err != nil {
		return "", err
	}
	return "zeros were written over everything (blocks that the disk had replaced keep their content)", d.Flush()
}

// pieces goes over the whole disk.
func pieces(ctx context.Context, r Request, doing string, do func(offset, length int64) error) error {
	for at := int64(0); at < r.Size; at += piece {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := do(at, min(piece, r.Size-at)); err != nil {
			return fmt.Errorf("%s at byte %d: %w", doing, at, err)
		}
		if at/piece%64 == 63 {
			r.Say(fmt.Sprintf("%s: %d of %d GiB", doing, at/piece+1, r.Size/piece))
		}
	}
	return nil
}
