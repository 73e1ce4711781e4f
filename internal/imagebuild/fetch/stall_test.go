package fetch_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/pin"
)

// link is a server whose speed is exact: the clock of a synctest bubble moves
// only when everybody waits.
type link struct {
	file  []byte
	pause time.Duration // before each byte; 0 is for ever
	asked int
}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	l.asked++
	return &http.Response{StatusCode: http.StatusOK, ContentLength: int64(len(l.file)), Header: http.Header{}, Request: r,
		Body: io.NopCloser(&drip{ctx: r.Context(), rest: l.file, pause: l.pause})}, nil
}

type drip struct {
	ctx   context.Context
	rest  []byte
	pause time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		return 0, io.EOF
	}
	if d.pause == 0 {
		<-d.ctx.Done()
		return 0, d.ctx.Err()
	}
	time.Sleep(d.pause)
	p[0], d.rest = d.rest[0], d.rest[1:]
	return 1, d.ctx.Err()
}

func TestASilentServer(t *testing.T) {
	files := one()
	a, c := newArchive(t, files), openCache(t)
	f := a.fetcher(c)
	synctest.Test(t, func(t *testing.T) {
		l := &link{file: files[aptDeb]}
		f.Client, f.Stall, f.Pause = &http.Client{Transport: l}, 30*time.Second, time.Second
		start := time.Now()
		_, err := f.Sets(t.Context(), lockOf(files), pin.SetRootfs)
		if err == nil || !strings.Contains(err.Error(), "stalled") || l.asked != 3 {
			t.Errorf("got %v after %d tries", err, l.asked)
		}
		// Three silences, and pauses of one and two seconds between them.
		if took := time.Since(start); took != 93*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// A slow server is not a silent one: what counts is that bytes come in at all.
func TestASlowServer(t *testing.T) {
	files := map[string][]byte{aptDeb: content("apt", 30)}
	a, c := newArchive(t, files), openCache(t)
	f := a.fetcher(c)
	synctest.Test(t, func(t *testing.T) {
		l := &link{file: files[aptDeb], pause: 29 * time.Second}
		f.Client, f.Stall = &http.Client{Transport: l}, 30*time.Second
		if _, err := f.Sets(t.Context(), lockOf(files), pin.SetRootfs); err != nil || l.asked != 1 {
			t.Errorf("got %v after %d tries", err, l.asked)
		}
	})
	if !c.Has(digest.Of(files[aptDeb])) {
		t.Error("not in the cache")
	}
}
