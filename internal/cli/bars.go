package cli

import (
	"io"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/slipway/slipway/internal/progress"
)

// bars reports progress on a terminal.
type bars struct{ p *mpb.Progress }

func newBars(w io.Writer) *bars {
	return &bars{p: mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))}
}

func (b *bars) close() { b.p.Wait() }

// Start implements progress.Reporter.
func (b *bars) Start(name string, total int64) progress.Task {
	t := &barTask{}
	name = "  " + name
	noted := decor.Any(func(decor.Statistics) string {
		if s := t.note.Load(); s != nil {
			return *s
		}
		return ""
	})
	if total == 0 {
		// No amount is known: a spinner and the time.
		t.bar = b.p.New(1, mpb.SpinnerStyle(), mpb.BarWidth(1),
			mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO), noted))
		return t
	}
	t.bar = b.p.New(total, mpb.BarStyle(),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR)),
		mpb.AppendDecorators(decor.CountersKibiByte("% .0f / % .0f"), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO), noted))
	t.counts = true
	return t
}

type barTask struct {
	bar    *mpb.Bar
	counts bool
	note   atomic.Pointer[string] // read by the renderer meanwhile
}

// Add implements progress.Task.
func (t *barTask) Add(n int64) {
	if t.counts {
		t.bar.IncrInt64(n)
	}
}

// Done implements progress.Task.
func (t *barTask) Done(note string, err error) {
	if err != nil {
		t.bar.Abort(false)
		return
	}
	note = parenthesis(note)
	t.note.Store(&note)
	t.bar.SetTotal(-1, true)
}
