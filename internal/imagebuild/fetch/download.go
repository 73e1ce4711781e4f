package fetch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/progress"
)

// item is one file to download.
type item struct {
	name   string // for people: package and version
	url    string
	digest digest.Digest
	size   int64
	moved  string // what a 404 means, before the name
	gone   string // and what to do about it

	authorization string // header of that name; "" sends none
}

// download brings one file into the cache: it goes on where an earlier run
// stopped, tries again when the network fails, and starts over once when what
// has come in is not what the lock says.
func (f *Fetcher) download(ctx context.Context, it item, task progress.Task) error {
	part, err := f.Cache.Partial(ctx, it.digest, it.size)
	if err != nil {
		return fmt.Errorf("%s: %w", it.name, err)
	}
	if part == nil { // another process brought it
		task.Add(it.size)
		return nil
	}
	defer part.Close()
	d := transfer{fetcher: f, item: it, part: part, task: task}
	err = d.complete(ctx)
	if errors.Is(err, digest.ErrMismatch) {
		// The beginning may come from another run, or from a mirror in the
		// middle of an update: what is there may be stale, once.
		if err = d.restart(); err == nil {
			err = d.complete(ctx)
		}
	}
	if errors.Is(err, digest.ErrMismatch) {
		err = errors.Join(diag.WithHint(fmt.Errorf("%s from %s is not what the lock says: %w", it.name, it.url, err),
			"the source or a proxy on the way gives other bytes than when it was pinned; try another mirror, or look into it before you "+f.repin()), part.Discard())
	}
	return err
}

// transfer is the download of one item.
type transfer struct {
	fetcher *Fetcher
	item    item
	part    *cas.Part
	task    progress.Task
	counted int64 // bytes told to task
}

// complete downloads what is missing and commits it.
func (t *transfer) complete(ctx context.Context) error {
	have, err := t.part.Size()
	if err != nil {
		return err
	}
	t.count(min(have, t.item.size))
	pause := t.fetcher.Pause
	for n := 1; ; n++ {
		err := t.attempt(ctx)
		if err == nil {
			return t.part.Commit()
		}
		if errors.Is(err, ErrGone) {
			return err
		}
		var again *temporaryError
		if !errors.As(err, &again) || ctx.Err() != nil {
			return fmt.Errorf("%s: %w", t.item.name, err)
		}
		if n == t.fetcher.Attempts {
			return diag.WithHint(fmt.Errorf("%s: %w (tried %d times)", t.item.name, err, n),
				"check the network and the proxy variables and run it again: it goes on where it stopped")
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

// restart throws away what has come in.
func (t *transfer) restart() error {
	if err := t.part.Reset(); err != nil {
		return fmt.Errorf("%s: %w", t.item.name, err)
	}
	return nil
}

// count tells the task that have bytes are there. After a restart it waits until
// there are more than before: progress never goes back.
func (t *transfer) count(have int64) {
	if have > t.counted {
		t.task.Add(have - t.counted)
		t.counted = have
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
