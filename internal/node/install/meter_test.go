package install

import (
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

func TestStatusLine(t *testing.T) {
	for want, p := range map[string]machine.Progress{
		"":                           {Stage: machine.StageSelect},
		"write:   0 %  0 of 800 MiB": {Stage: machine.StageWrite, Total: 800 << 20},
		"write:  25 %  200 of 800 MiB  10.0 MiB/s  1m0s left":       {Stage: machine.StageWrite, Done: 200 << 20, Total: 800 << 20, Rate: 10 << 20},
		"read-back: 100 %  800 of 800 MiB  10.0 MiB/s  (last look)": {Stage: machine.StageReadBack, Done: 800 << 20, Total: 800 << 20, Rate: 10 << 20, Note: "last look"},
	} {
		if got := statusLine(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRate(t *testing.T) {
	now := time.Now()
	if got := rate([]sample{{now, 100}, {now.Add(2 * time.Second), 300}}); got != 100 {
		t.Errorf("%g", got)
	}
	if got := rate([]sample{{now, 100}}); got != 0 {
		t.Errorf("%g", got)
	}
}

func TestPatience(t *testing.T) {
	p := DefaultPatience()
	var total time.Duration
	for n := 1; n < p.Tries; n++ {
		if p.wait(n) > p.Longest || n > 1 && p.wait(n) < p.wait(n-1) {
			t.Errorf("wait %d is %s", n, p.wait(n))
		}
		total += p.wait(n)
	}
	if total < 2*time.Minute || total > 5*time.Minute {
		t.Errorf("it waits for %s in all", total)
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{"a\nb": "a;b", "a\x1b[0mb": "a [0mb", "\xffx": "?x"} {
		if got := oneLine(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if n := len(oneLine(string(make([]byte, 1<<20)))); n > maxWords {
		t.Errorf("%d bytes", n)
	}
}

func TestPatch(t *testing.T) {
	p := patch{offset: 10, data: []byte("xyz")}
	b := []byte("0123456789")
	p.apply(b, 5) // holds 5 to 14
	if string(b) != "01234xyz89" {
		t.Errorf("%s", b)
	}
	for _, tt := range []struct {
		offset, length int64
		want           bool
	}{{0, 10, false}, {0, 11, true}, {12, 5, true}, {13, 5, false}} {
		if got := p.touches(tt.offset, tt.length); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
