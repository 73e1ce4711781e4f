package desk

import "sync"

// pulse wakes everybody who waits for news. Who is slow misses beats, not news:
// it looks at the state itself after each.
type pulse struct {
	mu   sync.Mutex
	next chan struct{}
}

func newPulse() *pulse { return &pulse{next: make(chan struct{})} }

// wait is closed at the next beat. It is asked for before looking, so that what
// happens while one looks is not missed.
func (p *pulse) wait() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.next)
	p.next = make(chan struct{})
}
