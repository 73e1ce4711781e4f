package httpd

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
	"github.com/slipway/slipway/internal/node/install/httpsource"
)

// losing loses the first answer to a path: the server has given it, nobody gets it.
type losing struct {
	path string
	lost bool
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && r.URL.Path == l.path && !l.lost {
		l.lost = true
		answer.Body.Close()
		return nil, errors.New("the link was cut")
	}
	return answer, err
}

// A seed that was lost on the wire is fetched again by the start of the machine that
// asked for it, and by nobody else who has the ticket.
func TestSeedThatWasLost(t *testing.T) { onBothLedgers(t, testSeedThatWasLost) }

func testSeedThatWasLost(t *testing.T, l *lab) {
	token, _ := l.start()
	source := func(start string, client *http.Client) *httpsource.Source {
		s, err := httpsource.New(httpsource.Options{Server: l.url, Ticket: token, Start: start, Client: client, Stall: time.Minute, Small: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	mine := source("a-start", &http.Client{Transport: &losing{path: machine.PathSeed}})
	if _, err := mine.Seed(t.Context()); err == nil || errors.Is(err, install.ErrTicket) {
		t.Fatalf("the answer was lost: %v", err)
	}
	if seed, err := mine.Seed(t.Context()); err != nil || seed["user-data"] == "" {
		t.Errorf("the second time: %v", err)
	}
	for _, start := range []string{"", "another-start"} {
		if _, err := source(start, l.http).Seed(t.Context()); !errors.Is(err, install.ErrTicket) {
			t.Errorf("start %q: %v", start, err)
		}
	}
	l.inEvents("taken", "handed out")
}
