package install

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

// How often a person and the other side hear of progress.
const (
	screenEvery = time.Second
	deskEvery   = 2 * time.Second
)

// meter counts, and tells the screen and the other side beside the work: neither
// a slow console nor a slow server holds up an install.
type meter struct {
	env    Env
	desk   Desk
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	now     machine.Progress
	samples []sample // of the last seconds, oldest first

	quit chan struct{}
	done sync.WaitGroup
}

func newMeter(env Env, desk Desk, cancel context.CancelCauseFunc) *meter {
	m := &meter{env: env, desk: desk, cancel: cancel, quit: make(chan struct{})}
	m.done.Go(m.screen)
	m.done.Go(m.report)
	return m
}

// sample is how much was done when.
type sample struct {
	at   time.Time
	done int64
}

// window is the time over which a rate is measured: an image begins with holes,
// which cost nothing, and a mean over all would promise too much.
const window = 6 * time.Second

// stop ends the telling.
func (m *meter) stop() {
	close(m.quit)
	m.done.Wait()
}

// stage begins a stage, unless it has begun.
func (m *meter) stage(s machine.Stage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now.Stage != s {
		m.now, m.samples = machine.Progress{Stage: s}, nil
	}
}

// expect begins to count towards total bytes.
func (m *meter) expect(total int64, note string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Done, m.now.Total, m.now.Note = 0, total, note
	m.samples = []sample{{time.Now(), 0}}
}

// add counts n more bytes.
func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Done += n
}

func (m *meter) snapshot() machine.Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples = append(m.samples, sample{time.Now(), m.now.Done})
	for len(m.samples) > 2 && time.Since(m.samples[1].at) > window {
		m.samples = m.samples[1:]
	}
	m.now.Rate = rate(m.samples)
	return m.now
}

// rate is in bytes a second.
func rate(samples []sample) float64 {
	first, last := samples[0], samples[len(samples)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(last.done-first.done) / took
}

func (m *meter) screen() {
	tick := time.NewTicker(screenEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.quit:
			return
		case <-tick.C:
			if line := statusLine(m.snapshot()); line != "" {
				m.env.Screen.Status(line)
			}
		}
	}
}

// report tells the other side. An answer that the ticket is no longer valid ends
// the install; anything else does not matter.
func (m *meter) report() {
	tick := time.NewTicker(deskEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.quit:
			return
		case <-tick.C:
		}
		p := m.snapshot()
		if p.Stage == "" || p.Stage == machine.StageInventory {
			continue // the ticket was not used yet
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := m.desk.Progress(ctx, p)
		cancel()
		if errors.Is(err, ErrTicket) {
			m.cancel(err)
			return
		}
	}
}

// statusLine is progress for a person, or "" when there is nothing to count.
func statusLine(p machine.Progress) string {
	if p.Total <= 0 {
		return ""
	}
	line := fmt.Sprintf("%s: %3d %%  %d of %d MiB", p.Stage, p.Done*100/p.Total, p.Done>>20, p.Total>>20)
	if p.Rate > 0 {
		line += fmt.Sprintf("  %.1f MiB/s", p.Rate/(1<<20))
	}
	if p.Rate > 0 && p.Done > 0 && p.Done < p.Total {
		left := time.Duration(float64(p.Total-p.Done)/p.Rate) * time.Second
		line += "  " + left.String() + " left"
	}
	if p.Note != "" {
		line += "  (" + p.Note + ")"
	}
	return line
}
