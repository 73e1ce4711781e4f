package secrets

import (
	"encoding/base64"
	"slices"
	"strings"
	"sync"
)

// Redactor replaces secrets in text. Its zero value knows none. It is safe for
// concurrent use, because logs and drivers share it.
type Redactor struct {
	mu     sync.RWMutex
	values []string
}

// redacted stands where a secret was.
const redacted = "<redacted>"

// shortest is the length from which a value counts as a secret: a shorter one
// would blank out ordinary words.
const shortest = 8

// Add makes values unspeakable, and with each its lines (a key file is logged line
// by line) and its base64 form (as in a Kubernetes Secret).
func (r *Redactor) Add(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range values {
		r.add(v)
		r.add(base64.StdEncoding.EncodeToString([]byte(v)))
		for line := range strings.Lines(v) {
			if !strings.HasPrefix(line, "-----") { // a PEM header is no secret
				r.add(line)
			}
		}
	}
	// The longest first, so that a whole key is replaced before one of its lines.
	slices.SortFunc(r.values, func(a, b string) int { return len(b) - len(a) })
}

func (r *Redactor) add(v string) {
	if v = strings.TrimSpace(v); len(v) >= shortest && !slices.Contains(r.values, v) {
		r.values = append(r.values, v)
	}
}

// Text returns s without the secrets.
func (r *Redactor) Text(s string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, v := range r.values {
		s = strings.ReplaceAll(s, v, redacted)
	}
	return s
}
