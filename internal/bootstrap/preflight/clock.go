package preflight

import (
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
)

// maxSkew is how far clocks may be apart. Certificates are valid from the second in
// which they are made, and etcd complains from one second on.
const maxSkew = 2 * time.Second

// clock judges one node's clock.
func (l *list) clock(in Input, s facts.Seen) {
	c := s.Facts.Clock
	if !c.Synchronised && !in.WithoutTimeServer {
		l.add(s.Node, "its clock is not synchronised")("does it reach a time server? name one in time.servers of the profile; see: timedatectl timesync-status")
	}
	if c.LocalRTC {
		l.add(s.Node, "its hardware clock is in local time: at a change of summer time it is wrong by an hour after a restart")("timedatectl set-local-rtc 0")
	}
	if off := s.Off(); off.Abs() > maxSkew {
		l.add(s.Node, "its clock is %s %s ours", off.Abs().Round(time.Second/10), direction(off))("set the clock of whichever is wrong: certificates would be valid only later, or no more")
	}
}

// clocks compares the nodes with each other: that matters even where ours is wrong.
func (l *list) clocks(seen []facts.Seen) {
	for i, a := range seen {
		for _, b := range seen[i+1:] {
			if apart := a.Apart(b); apart.Abs() > maxSkew {
				l.add("", "the clock of %s is %s %s that of %s", a.Node, apart.Abs().Round(time.Second/10), direction(apart), b.Node)("give both the same time servers in the profile, and wait until they agree")
			}
		}
	}
}

func direction(d time.Duration) string {
	if d < 0 {
		return "behind"
	}
	return "ahead of"
}
