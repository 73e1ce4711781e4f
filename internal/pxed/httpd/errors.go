package httpd

import (
	"encoding/json"
	"net/http"
)

// Error is the body of every answer that refuses, for machines and operators.
type Error struct {
	Error string `json:"error"`          // what is wrong, lower case
	Hint  string `json:"hint,omitempty"` // what to do
	Code  string `json:"code"`           // for programs, see docs/PXED.md
}

// refusal is an answer that refuses.
type refusal struct {
	status           int
	code, text, hint string
}

// refuse answers with a refusal and says so in the log: one line, who asked and why not.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, no refusal) {
	level := s.log.Warn
	if no.status == http.StatusNotFound {
		level = s.log.Info
	}
	level("refused", "from", who(r), "method", r.Method, "path", r.URL.Path, "code", no.code, "why", no.text)
	s.counted.Refused(no.code)
	if no.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "5")
	}
	if no.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	answer(w, no.status, Error{no.text, no.hint, no.code})
}

// answer writes v as JSON. An error means that the client has gone.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}
