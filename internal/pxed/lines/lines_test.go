package lines

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// file notes every write.
type file struct{ writes []string }

func (f *file) Write(p []byte) (int, error) {
	f.writes = append(f.writes, string(p))
	return len(p), nil
}

func TestLinesOfABurstGoOutTogether(t *testing.T) {
	f := &file{}
	w := New(f)
	fmt.Fprintln(w, "before")
	w.Hold()
	fmt.Fprintln(w, "one")
	w.Hold() // a second burst begins before the first has ended
	fmt.Fprintln(w, "two")
	w.Release()
	if len(f.writes) != 1 {
		t.Errorf("written while it was held: %q", f.writes)
	}
	w.Release()
	fmt.Fprintln(w, "after")
	if want := []string{"before\n", "one\ntwo\n", "after\n"}; !slices.Equal(f.writes, want) {
		t.Errorf("got %q", f.writes)
	}
}

func TestWhatIsKeptBackIsBounded(t *testing.T) {
	f := &file{}
	w := New(f)
	w.Hold()
	for range 3 {
		fmt.Fprint(w, strings.Repeat("x", most/2))
	}
	if len(f.writes) != 1 || len(f.writes[0]) != most {
		t.Errorf("%d writes", len(f.writes))
	}
	w.Release()
	if len(f.writes) != 2 {
		t.Errorf("%d writes", len(f.writes))
	}
}
