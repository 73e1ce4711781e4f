// Package installtest plays pxed's part of an install for tests: it serves a build
// and answers one machine, with the faults of a real network on demand.
package installtest

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

// Server answers one machine that is armed with Ticket.
type Server struct {
	Dir    string // of the build
	Ticket machine.Ticket
	Seed   machine.Seed
	Reply  machine.Reply
	Now    func() time.Time

	// Fault, when it returns true, has answered the request itself.
	Fault func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	reports  []machine.Report
	progress []machine.Progress
	receipts []machine.Receipt
}

// Reports are those that arrived.
func (s *Server) Reports() []machine.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]machine.Report(nil), s.reports...)
}

// Progress are the signs of life that arrived.
func (s *Server) Progress() []machine.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]machine.Progress(nil), s.progress...)
}

// Receipts are those that arrived.
func (s *Server) Receipts() []machine.Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]machine.Receipt(nil), s.receipts...)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Now != nil {
		w.Header().Set("Date", s.Now().UTC().Format(http.TimeFormat))
	}
	if s.Fault != nil && s.Fault(w, r) {
		return
	}
	if name, ok := strings.CutPrefix(r.URL.Path, machine.PathArtifacts); ok {
		s.artifact(w, r, name)
		return
	}
	if r.URL.Path != machine.PathReport && r.Header.Get("Authorization") != "Bearer "+s.Ticket.ID {
		Refuse(w, http.StatusForbidden, "this ticket was never handed out")
		return
	}
	switch r.URL.Path {
	case machine.PathReport:
		take(s, w, r, &s.reports, s.Reply)
	case machine.PathTicket:
		answer(w, s.Ticket)
	case machine.PathSeed:
		answer(w, s.Seed)
	case machine.PathProgress:
		take(s, w, r, &s.progress, struct{}{})
	case machine.PathReceipt:
		take(s, w, r, &s.receipts, struct{}{})
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) artifact(w http.ResponseWriter, r *http.Request, name string) {
	f, err := os.Open(filepath.Join(s.Dir, filepath.FromSlash(name)))
	if err != nil {
		Refuse(w, http.StatusNotFound, "no such artifact")
		return
	}
	defer f.Close()
	http.ServeContent(w, r, name, time.Unix(1700000000, 0), f)
}

// checked is a document that knows whether it is one.
type checked interface{ Check() error }

// take reads a document, checks it as pxed does, and keeps it.
func take[T checked](s *Server, w http.ResponseWriter, r *http.Request, list *[]T, reply any) {
	var v T
	err := json.NewDecoder(r.Body).Decode(&v)
	if err == nil {
		err = v.Check()
	}
	if err != nil {
		Refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	s.mu.Lock()
	*list = append(*list, v)
	s.mu.Unlock()
	answer(w, reply)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// Refuse answers as pxed does when it refuses.
func Refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text})
}
