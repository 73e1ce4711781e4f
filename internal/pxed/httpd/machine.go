package httpd

import (
	"errors"
	"io"
	"net/http"

	"github.com/slipway/slipway/internal/machine"
)

// maxSmall bounds bodies that are small by nature, bytes.
const maxSmall = 64 << 10

func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	var report machine.Report
	if !s.read(w, r, machine.MaxDocument, &report) {
		return
	}
	reply, err := s.desk.Report(r.Context(), bearer(r), report)
	if err == nil {
		s.log.Info("report", "from", who(r), "serial", report.Identity.Serial, "gets", string(reply.Action), "why", reply.Message)
	}
	s.reply(w, r, reply, err)
}

func (s *Server) ticket(w http.ResponseWriter, r *http.Request) {
	ticket, err := s.desk.Ticket(r.Context(), bearer(r))
	s.reply(w, r, ticket, err)
}

func (s *Server) seed(w http.ResponseWriter, r *http.Request) {
	seed, err := s.desk.Seed(r.Context(), bearer(r), r.Header.Get(machine.HeaderStart))
	s.reply(w, r, seed, err)
}

func (s *Server) progress(w http.ResponseWriter, r *http.Request) {
	var p machine.Progress
	if !s.read(w, r, maxSmall, &p) {
		return
	}
	err := s.desk.Progress(r.Context(), bearer(r), p)
	if no := (*machine.Refusal)(nil); errors.As(err, &no) && statusOf(no.Code) == http.StatusGone {
		// To an install that is under way an ended ticket means "stop".
		s.refuse(w, r, refusal{http.StatusConflict, string(no.Code), no.Reason, no.Hint})
		return
	}
	s.reply(w, r, struct{}{}, err)
}

func (s *Server) receipt(w http.ResponseWriter, r *http.Request) {
	var receipt machine.Receipt
	if !s.read(w, r, machine.MaxDocument, &receipt) {
		return
	}
	reply, err := s.desk.Receipt(r.Context(), bearer(r), receipt)
	s.reply(w, r, reply, err)
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	var ready machine.Ready
	if !s.read(w, r, maxSmall, &ready) {
		return
	}
	s.reply(w, r, struct{}{}, s.desk.Ready(r.Context(), bearer(r), ready))
}

// reply answers with v, or with why not.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, v)
}

// read decodes the body into v.
func (s *Server) read(w http.ResponseWriter, r *http.Request, most int64, v any) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		s.refuse(w, r, refusal{http.StatusRequestEntityTooLarge, "too-large", "the body is too large", ""})
		return false
	case err != nil:
		s.refuse(w, r, refusal{http.StatusBadRequest, "bad-request", "the body ended early: " + err.Error(), ""})
		return false
	}
	if err := machine.Decode(body, v); err != nil {
		s.fail(w, r, err)
		return false
	}
	return true
}
