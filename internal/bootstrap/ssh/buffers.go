package ssh

import (
	"bytes"
	"strings"
	"sync"
)

// capped keeps the beginning of what is written to it, and notes that there was more.
type capped struct {
	bytes.Buffer
	limit int
	over  bool
}

func (c *capped) Write(p []byte) (int, error) {
	room := c.limit - c.Len()
	if len(p) > room {
		c.over = true
		c.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return c.Buffer.Write(p)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu    sync.Mutex
	data  []byte
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if cut := len(t.data) - t.limit; cut > 0 {
		t.data = append(t.data[:0], t.data[cut:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.data))
}
