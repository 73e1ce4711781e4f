package fetch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/slipway/slipway/internal/diag"
)

// ErrGone is wrapped by the error for an input that its source no longer has.
var ErrGone = errors.New("not found at its source")

// goneError is one such input.
type goneError struct {
	item   item
	status string // of the answer
}

func (g *goneError) Error() string {
	return fmt.Sprintf("%s %s: %v (%s: %s)", g.item.moved, g.item.name, ErrGone, g.item.url, g.status)
}

// Unwrap gives ErrGone.
func (g *goneError) Unwrap() error { return ErrGone }

// vanished collects them: who has to pin anew wants to see at once how much is gone.
type vanished struct {
	mu   sync.Mutex
	list []*goneError
}

// take keeps an error that is one, and passes on every other.
func (v *vanished) take(err error) error {
	var g *goneError
	if !errors.As(err, &g) {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list = append(v.list, g)
	return nil
}

// maxNamed bounds how many are listed.
const maxNamed = 30

// err is all of them in one error, or nil.
func (v *vanished) err() error {
	switch len(v.list) {
	case 0:
		return nil
	case 1:
		return diag.WithHint(v.list[0], v.list[0].item.gone)
	}
	slices.SortFunc(v.list, func(a, b *goneError) int { return strings.Compare(a.item.name, b.item.name) })
	var b strings.Builder
	for i, g := range v.list {
		if i == maxNamed {
			fmt.Fprintf(&b, "\n  and %d more", len(v.list)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s (%s: %s)", g.item.name, g.item.url, g.status)
	}
	first := v.list[0].item
	return diag.WithHint(fmt.Errorf("%s %d packages: %w:%s", first.moved, len(v.list), ErrGone, b.String()), first.gone)
}
