package cli

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/slipway/slipway/internal/progress"
)

// signOfLife is how often a task that takes long says so.
const signOfLife = 10 * time.Second

// lines reports progress to a log.
type lines struct {
	mu      sync.Mutex
	w       io.Writer
	running []*lineTask
	stop    chan struct{}
	stopped sync.WaitGroup
}

func newLines(w io.Writer) *lines {
	l := &lines{w: w, stop: make(chan struct{})}
	l.stopped.Go(l.tick)
	return l
}

func (l *lines) close() {
	close(l.stop)
	l.stopped.Wait()
}

// tick lets running tasks say that they live.
func (l *lines) tick() {
	t := time.NewTicker(signOfLife)
	defer t.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-t.C:
			l.mu.Lock()
			for _, task := range l.running {
				fmt.Fprintf(l.w, "  … %s: %s%s\n", task.name, since(task.start), task.amount())
			}
			l.mu.Unlock()
		}
	}
}

// Start implements progress.Reporter.
func (l *lines) Start(name string, total int64) progress.Task {
	t := &lineTask{lines: l, name: name, total: total, start: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = append(l.running, t)
	return t
}

type lineTask struct {
	lines       *lines
	name        string
	total, done int64 // bytes, guarded by lines.mu
	start       time.Time
}

// Add implements progress.Task.
func (t *lineTask) Add(n int64) {
	t.lines.mu.Lock()
	defer t.lines.mu.Unlock()
	t.done += n
}

// Done implements progress.Task.
func (t *lineTask) Done(note string, err error) {
	l := t.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = slices.DeleteFunc(l.running, func(o *lineTask) bool { return o == t })
	if err != nil {
		note = "failed"
	}
	fmt.Fprintf(l.w, "  %-28s %8s%s%s\n", t.name, since(t.start), t.amount(), parenthesis(note))
}

// amount is how much was done; the caller holds the lock.
func (t *lineTask) amount() string {
	switch {
	case t.done == 0:
		return ""
	case t.total > t.done:
		return fmt.Sprintf("  %s of %s", humanize.IBytes(uint64(t.done)), humanize.IBytes(uint64(t.total)))
	default:
		return "  " + humanize.IBytes(uint64(t.done))
	}
}

func since(start time.Time) string { return fmt.Sprintf("%.1f s", time.Since(start).Seconds()) }

func parenthesis(note string) string {
	if note == "" {
		return ""
	}
	return "  (" + note + ")"
}
