package vip

import (
	"slices"
	"testing"
	"time"
)

// The bar of the design: the address moves within this time.
const bar = 5 * time.Second

// rounds is how often the holder dies. The middle one of the times counts: on a
// machine with two busy cores a single one says little.
const rounds = 3

// quiet is how long nothing may move after a server has come back: several times what
// keepalived needs to see it.
const quiet = 8 * time.Second

func TestAddressMoves(t *testing.T) {
	l := open(t)
	for _, s := range l.servers {
		s.serve()
		s.keepalive()
	}
	took := l.until("somebody holds the address", func() bool { return l.answers() != "" })
	t.Logf("after %s %s holds %s", took.Round(time.Millisecond), l.answers(), l.cluster.Network.APIVIP)
	settled(l)

	var died, cut []time.Duration
	for range rounds {
		holder := l.server(l.answers())
		holder.die()
		died = append(died, l.moved(holder, "its API server died"))
		holder.serve()
		l.stays(holder, "its API server is back")

		holder = l.server(l.answers())
		holder.cable("down")
		holder.halt()
		cut = append(cut, l.moved(holder, "it lost its power"))
		holder.cable("up")
		holder.host.Run(t, "sh", "-c", "ip addr del "+l.cluster.Network.APIVIP.String()+"/32 dev eth0 || true") // a restart forgets it
		holder.keepalive()
		l.stays(holder, "it is back")
	}
	for what, times := range map[string][]time.Duration{"the holder's API server dies": died, "the holder loses its power": cut} {
		slices.Sort(times)
		t.Logf("%s: the address answers again after %s (best), %s (median), %s (worst)", what,
			times[0].Round(time.Millisecond), times[rounds/2].Round(time.Millisecond), times[rounds-1].Round(time.Millisecond))
		if times[rounds/2] > bar {
			t.Errorf("%s: %s, more than %s", what, times[rounds/2], bar)
		}
	}
}

// settled waits until the first election is over: three that start at once may hand
// the address on among themselves.
func settled(l *lab) {
	l.t.Helper()
	for before := -1; before != l.moves(); time.Sleep(2 * time.Second) {
		before = l.moves()
	}
}

// moved waits until another server answers.
func (l *lab) moved(from *server, why string) time.Duration {
	l.t.Helper()
	took := l.until("the address leaves "+from.node.Name+", "+why, func() bool {
		now := l.answers()
		return now != "" && now != from.node.Name
	})
	l.t.Logf("%s: %s; after %s %s answers", from.node.Name, why, took.Round(time.Millisecond), l.answers())
	return took
}

// stays watches that nothing moves.
func (l *lab) stays(back *server, why string) {
	l.t.Helper()
	holder, moves := l.answers(), l.moves()
	for end := time.Now().Add(quiet); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if now := l.answers(); now != "" && now != holder {
			l.t.Errorf("%s: %s, and the address went from %s to %s", back.node.Name, why, holder, now)
			return
		}
	}
	if now := l.moves(); now != moves {
		l.t.Errorf("%s: %s, and the address moved %d times", back.node.Name, why, now-moves)
	}
}
