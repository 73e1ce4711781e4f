package netboot

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/qemu"
)

// TestTickets starts installers with tickets that do not work, or no longer.
// Nothing is written, and everybody is told why.
func TestTickets(t *testing.T) {
	full(t)
	l := newLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	for _, c := range []struct {
		name  string
		words func(*testing.T, *box) string // what the installer is started with
		why   string
	}{
		{"wrong", func(t *testing.T, b *box) string {
			return ticketWord.ReplaceAllString(s.armed(t, b), machine.WordTicket+"="+strings.Repeat("0f", 32))
		}, "this ticket is not known"},
		{"replaced", func(t *testing.T, b *box) string {
			first := s.armed(t, b)
			s.order(t, b)
			return first
		}, "a later boot or arming replaced the ticket"},
		{"taken back", func(t *testing.T, b *box) string {
			words := s.armed(t, b)
			s.disarm(t)
			return words
		}, "the ticket was taken back"},
		{"expired", func(t *testing.T, b *box) string {
			words := s.armed(t, b, "--expires", "10s")
			s.until(t, "the ticket has expired", func() (bool, string) {
				g := s.show(t).Grant
				return g.End == "expired", string(g.End)
			})
			return words
		}, "the ticket expired at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := l.blank(t)
			notAdmitted(t, s, b, c.words(t, b), c.why)
			s.disarm(t)
		})
	}
}

// notAdmitted starts an installer whose ticket does not work.
func notAdmitted(t *testing.T, s *server, b *box, words, why string) {
	t.Helper()
	before, at := b.sums(t), len(s.said(t))
	v := b.installer(t, words)
	got := sees(t, v, qemu.Like(why)+`[^\n]*\n`)
	t.Logf("console: %s", got[0])
	sees(t, v, qemu.Like("restarting in"))
	s.told(t, at, nodeName, why)
	pull(t, v)
	b.untouched(t, before)
	step(t, v, "refused: %s", why)
}
