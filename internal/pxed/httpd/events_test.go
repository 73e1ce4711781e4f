package httpd

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
)

// listen opens the stream after a cursor and gives its events.
func (l *lab) listen(ctx context.Context, cursor string) <-chan desk.Event {
	l.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", l.url+"/api/v1/events", nil)
	if err != nil {
		l.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+operatorToken)
	if cursor != "" {
		r.Header.Set("Last-Event-ID", cursor)
	}
	answer, err := l.http.Do(r)
	if err != nil {
		l.Fatal(err)
	}
	if answer.Header.Get("Content-Type") != "text/event-stream" {
		l.Fatalf("%s %v", answer.Status, answer.Header)
	}
	out := make(chan desk.Event, 100)
	go func() {
		defer close(out)
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			var e desk.Event
			if ok && json.Unmarshal([]byte(data), &e) == nil {
				out <- e
			}
		}
	}()
	return out
}

func next(t *testing.T, events <-chan desk.Event) desk.Event {
	t.Helper()
	select {
	case e, ok := <-events:
		if !ok {
			t.Fatal("the stream ended")
		}
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event came")
	}
	return desk.Event{}
}

// A client that comes back with the number of its last event misses nothing and
// gets nothing twice.
func TestStreamGoesOnAfterACut(t *testing.T) {
	l := newLab(t)
	l.arm("n1", desk.Order{})
	ctx, cut := context.WithCancel(t.Context())
	events := l.listen(ctx, "")
	first := next(t, events)
	if first.Seq != 1 || first.Kind != "arm" {
		t.Errorf("%+v", first)
	}
	cut()
	l.arm("n2", desk.Order{})
	l.boot(desktest.MAC3, "sn-3")
	ctx, cut = context.WithCancel(t.Context())
	defer cut()
	events = l.listen(ctx, "1")
	if e := next(t, events); e.Seq != 2 || e.Node != "n2" {
		t.Errorf("%+v", e)
	}
	for want := int64(3); want < 5; want++ {
		if e := next(t, events); e.Seq != want {
			t.Errorf("%+v, want number %d", e, want)
		}
	}
	l.arm("n3", desk.Order{}) // while the stream is open
	for e := next(t, events); e.Node != "n3" || e.Kind != "arm"; e = next(t, events) {
		if e.Seq > 100 {
			t.Fatalf("%+v", e)
		}
	}
}

func TestPolling(t *testing.T) {
	l := newLab(t)
	type page struct {
		Events []desk.Event
		Next   int64
	}
	if p := want[page](l, "GET", "/api/v1/events", operatorToken, nil); p.Events == nil || len(p.Events) != 0 || p.Next != 0 {
		t.Errorf("%+v", p)
	}
	done := make(chan page, 1)
	go func() { done <- want[page](l, "GET", "/api/v1/events?after=0&wait=20", operatorToken, nil) }()
	l.arm("n1", desk.Order{})
	select {
	case p := <-done:
		if len(p.Events) != 1 || p.Next != 1 {
			t.Errorf("%+v", p)
		}
	case <-time.After(15 * time.Second):
		t.Fatal("the poll did not end with the event")
	}
	if p := want[page](l, "GET", "/api/v1/events?after=-1", operatorToken, nil); p.Next != 1 || len(p.Events) != 0 {
		t.Errorf("%+v", p)
	}
	for _, query := range []string{"?after=x", "?after=-2", "?wait=-1", "?wait=1s", "?after=99999999999999999999"} {
		if status, _ := l.do("GET", "/api/v1/events"+query, operatorToken, nil); status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, status)
		}
	}
}
