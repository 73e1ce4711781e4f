// Package sse writes server-sent events (WHATWG HTML, section 9.2): a stream of
// small messages over HTTP that a browser takes up again where it was cut.
package sse

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Heartbeat is how often a comment is due when there is nothing to send, so that
// both sides notice a dead connection.
const Heartbeat = 15 * time.Second

// patience is how long one message may take to be written.
const patience = 30 * time.Second

// Stream is an answer that consists of events.
type Stream struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// Start answers with the headers of an event stream.
func Start(w http.ResponseWriter) *Stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &Stream{w, http.NewResponseController(w)}
}

// Send writes one event; v becomes JSON, which has no line breaks. An empty kind
// is a plain message, an empty id leaves the client's cursor where it is.
func (s *Stream) Send(id, kind string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("event: %w", err)
	}
	text := ""
	if id != "" {
		text = "id: " + id + "\n"
	}
	if kind != "" {
		text += "event: " + kind + "\n"
	}
	return s.write(text + "data: " + string(data) + "\n\n")
}

// Comment writes a line that clients pass over.
func (s *Stream) Comment(text string) error { return s.write(": " + text + "\n\n") }

func (s *Stream) write(text string) error {
	// Each piece gets its own time; the stream as a whole has no end.
	_ = s.c.SetWriteDeadline(time.Now().Add(patience))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.c.Flush()
}
