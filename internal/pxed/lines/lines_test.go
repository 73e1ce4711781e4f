package lines

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// file notes every write.
type file struct {
	mu     sync.Mutex
	writes []string
}

func (f *file) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes = append(f.writes, string(p))
	return len(p), nil
}

func (f *file) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.writes)
}

func TestLinesGoOutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &file{}
		w := New(f)
		fmt.Fprintln(w, "alone")
		if got := f.all(); !slices.Equal(got, []string{"alone\n"}) {
			t.Errorf("a line after nothing: %q", got)
		}
		fmt.Fprintln(w, "one")
		time.Sleep(gap / 2)
		fmt.Fprintln(w, "two")
		if got := f.all(); len(got) != 1 {
			t.Errorf("within the gap: %q", got)
		}
		time.Sleep(gap/2 + time.Nanosecond)
		if got := f.all(); !slices.Equal(got[1:], []string{"one\ntwo\n"}) {
			t.Errorf("after the gap: %q", got)
		}
		time.Sleep(gap)
		fmt.Fprintln(w, "alone again")
		fmt.Fprintln(w, "last words")
		w.Close()
		if got := f.all(); !slices.Equal(got[2:], []string{"alone again\n", "last words\n"}) {
			t.Errorf("at the end: %q", got)
		}
	})
}

func TestWhatIsKeptBackIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &file{}
		w := New(f)
		for range 4 {
			fmt.Fprint(w, strings.Repeat("x", most/2))
		}
		if got := f.all(); len(got) != 2 || len(got[1]) != most {
			t.Errorf("%d writes", len(got))
		}
		w.Close()
		if got := f.all(); len(got) != 3 || len(strings.Join(got, "")) != 2*most {
			t.Errorf("%d writes", len(got))
		}
	})
}
