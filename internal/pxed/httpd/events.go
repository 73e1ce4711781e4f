package httpd

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/sse"
)

// Times of the event stream.
const (
	maxWait = 60 * time.Second // of a poll
	batch   = 200              // events read at once
)

// events answers with what happened after a cursor: as a stream (server-sent
// events, WHATWG HTML 9.2) when that is asked for, else as a list, after waiting
// for at most ?wait= seconds when there is nothing yet. The cursor is
// Last-Event-ID or ?after=; -1 means "from now on".
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	after, wait, ok := cursor(r)
	if !ok {
		s.refuse(w, r, refusal{http.StatusBadRequest, "bad-request", "after and wait are whole numbers", "such as ?after=0&wait=30"})
		return
	}
	if after < 0 {
		last, err := s.desk.LastEvent(r.Context())
		if err != nil {
			s.fail(w, r, err)
			return
		}
		after = last
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		s.stream(w, r, after)
		return
	}
	s.poll(w, r, after, wait)
}

func cursor(r *http.Request) (after int64, wait time.Duration, ok bool) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	after, err := number(text)
	if err != nil || after < -1 {
		return 0, 0, false
	}
	seconds, err := number(r.URL.Query().Get("wait"))
	if err != nil || seconds < 0 {
		return 0, 0, false
	}
	return after, min(maxWait, time.Duration(min(seconds, 3600))*time.Second), true
}

func number(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}

func (s *Server) poll(w http.ResponseWriter, r *http.Request, after int64, wait time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + answerTime))
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		changed := s.desk.Changed()
		list, err := s.desk.Events(r.Context(), after, batch)
		if err != nil || len(list) > 0 || wait == 0 {
			s.reply(w, r, eventList(list, after), err)
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			wait = 0
		case <-s.closing:
			wait = 0
		case <-r.Context().Done():
			return
		}
	}
}

// eventPage is a piece of the event log. Next is the cursor to go on with.
type eventPage struct {
	Events []desk.Event `json:"events"`
	Next   int64        `json:"next"`
}

func eventList(list []desk.Event, after int64) eventPage {
	page := eventPage{Events: []desk.Event{}, Next: after}
	if len(list) > 0 {
		page.Events, page.Next = list, list[len(list)-1].Seq
	}
	return page
}

// stream sends events until the client goes or the server stops.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, after int64) {
	out := sse.Start(w)
	beat := time.NewTicker(sse.Heartbeat)
	defer beat.Stop()
	for {
		changed := s.desk.Changed()
		list, err := s.desk.Events(r.Context(), after, batch)
		if err != nil {
			return // the client comes back with its cursor
		}
		for _, e := range list {
			after = e.Seq
			if out.Send(strconv.FormatInt(e.Seq, 10), "", e) != nil {
				return
			}
		}
		if len(list) == batch {
			continue
		}
		select {
		case <-changed:
		case <-beat.C:
			if out.Comment("alive") != nil {
				return
			}
		case <-s.closing:
			return
		case <-r.Context().Done():
			return
		}
	}
}
