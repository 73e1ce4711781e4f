package httpd

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/desk"
)

// fail answers with an error of the desk: a refusal with its own status, or 503
// for a ledger that cannot answer now.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var no *machine.Refusal
	if errors.As(err, &no) {
		s.refuse(w, r, refusal{statusOf(no.Code), string(no.Code), no.Reason, no.Hint})
		return
	}
	s.log.Error("cannot answer", "path", r.URL.Path, "error", err)
	hint := cmp.Or(diag.HintOf(err), "ask again in a moment; if it stays so, look at pxed's log")
	s.refuse(w, r, refusal{http.StatusServiceUnavailable, "unavailable", "pxed cannot decide now: " + err.Error(), hint})
}

// statusOf gives each kind of refusal its HTTP status. 409 to progress means
// "stop", 410 to a seed or ticket "never again".
func statusOf(c machine.Code) int {
	switch c {
	case machine.CodeNone, machine.CodeWrong:
		return http.StatusUnauthorized
	case machine.CodeUsed, machine.CodeExpired, machine.CodeSuperseded, machine.CodeTaken:
		return http.StatusGone
	case desk.CodeNoNode, desk.CodeNoMachine, desk.CodeNoMember:
		return http.StatusNotFound
	case machine.CodeDesignOnly:
		return http.StatusForbidden
	case machine.CodeDocument, machine.CodeOrder:
		return http.StatusBadRequest
	default:
		return http.StatusConflict
	}
}
