package facts

import (
	"testing"
	"time"
)

// A slow answer widens what is possible, and never makes a difference out of nothing.
func TestClocks(t *testing.T) {
	at := func(least, most time.Duration) Seen { return Seen{Behind: least, Ahead: most} }
	for _, c := range []struct {
		a, b       Seen
		off, apart time.Duration
	}{
		{at(-time.Second, time.Second), at(-time.Second, time.Second), 0, 0},
		{at(3*time.Second, 4*time.Second), at(0, time.Second), 3 * time.Second, 2 * time.Second},
		{at(-5*time.Second, -4*time.Second), at(-4*time.Second, -3*time.Second), -4 * time.Second, 0},
		{at(-5*time.Second, -4*time.Second), at(3*time.Second, 4*time.Second), -4 * time.Second, -7 * time.Second},
		{at(-10*time.Second, 10*time.Second), at(5*time.Second, 6*time.Second), 0, 0},
	} {
		if off, apart := c.a.Off(), c.a.Apart(c.b); off != c.off || apart != c.apart {
			t.Errorf("%v and %v: off %s, apart %s", c.a, c.b, off, apart)
		}
	}
}
