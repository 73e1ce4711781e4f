package httpd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/run"
)

// Clusters keeps what a cluster is recognised by.
type Clusters interface {
	Cluster(ctx context.Context, environment string) (identity.Cluster, error)
	PutCluster(ctx context.Context, c identity.Cluster) error
	ForgetCluster(ctx context.Context, environment string, ca digest.Digest) error
}

// Runs keeps how far the runs of other programs have come.
type Runs interface {
	Runs(ctx context.Context, f run.Filter) ([]run.Record, error)
	Run(ctx context.Context, id string) (run.Record, error)
	StartRun(ctx context.Context, r run.Record) error
	SetStep(ctx context.Context, id string, s run.Step) error
	EndRun(ctx context.Context, id, outcome string, at time.Time) error
}

// Book is what other programs of the operator keep in pxed's ledger.
type Book interface {
	Clusters
	Runs
}

// bookRoutes are the paths of bootstrap, which keeps its records here while pxed has
// the ledger. Without a book they do not exist.
func (s *Server) bookRoutes(b Book) {
	if b == nil {
		return
	}
	s.mux.HandleFunc("GET /api/v1/clusters/{environment}", s.operator(s.clusterOf(b)))
	s.mux.HandleFunc("PUT /api/v1/clusters/{environment}", s.operator(s.putCluster(b)))
	s.mux.HandleFunc("DELETE /api/v1/clusters/{environment}", s.operator(s.forgetCluster(b)))
	s.mux.HandleFunc("GET /api/v1/runs", s.operator(s.listRuns(b)))
	s.mux.HandleFunc("GET /api/v1/runs/{id}", s.operator(s.showRun(b)))
	s.mux.HandleFunc("PUT /api/v1/runs/{id}", s.operator(s.startRun(b)))
	s.mux.HandleFunc("PUT /api/v1/runs/{id}/steps/{step}", s.operator(s.setStep(b)))
	s.mux.HandleFunc("POST /api/v1/runs/{id}/end", s.operator(s.endRun(b)))
}

// record answers with v, with 404 when there is none, or with why not.
func (s *Server) record(w http.ResponseWriter, r *http.Request, v any, err error) {
	if no := (*machine.Refusal)(nil); errors.As(err, &no) && no.Code == desk.CodeNoRecord {
		s.refuse(w, r, refusal{http.StatusNotFound, string(no.Code), no.Reason, no.Hint})
		return
	}
	s.reply(w, r, v, err)
}

func (s *Server) clusterOf(b Clusters) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := b.Cluster(r.Context(), r.PathValue("environment"))
		s.record(w, r, c, err)
	}
}

func (s *Server) putCluster(b Clusters) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var c identity.Cluster
		if !s.read(w, r, machine.MaxDocument, &c) {
			return
		}
		if c.Environment != r.PathValue("environment") || c.CA.IsZero() {
			s.refuse(w, r, refusal{http.StatusBadRequest, string(machine.CodeDocument), "the record is of another environment, or has no CA", ""})
			return
		}
		s.record(w, r, struct{}{}, b.PutCluster(r.Context(), c))
	}
}

func (s *Server) forgetCluster(b Clusters) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ca, err := digest.Parse(r.URL.Query().Get("ca"))
		if err != nil {
			s.refuse(w, r, refusal{http.StatusBadRequest, "bad-request", "ca does not say which cluster is meant", "such as ?ca=<64 hex digits>"})
			return
		}
		s.record(w, r, struct{}{}, b.ForgetCluster(r.Context(), r.PathValue("environment"), ca))
	}
}

// runList is the answer to a question for runs.
type runList struct {
	Runs []run.Record `json:"runs"`
}

// maxRuns is how many runs one answer holds at most.
const maxRuns = 1000

func (s *Server) listRuns(b Runs) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		limit, err := number(q.Get("limit"))
		open, err2 := strconv.ParseBool(cmp.Or(q.Get("open"), "false"))
		if err != nil || err2 != nil || limit < 0 || limit > maxRuns {
			s.refuse(w, r, refusal{http.StatusBadRequest, "bad-request", fmt.Sprintf("open is true or false, limit a number up to %d", maxRuns), ""})
			return
		}
		list, err := b.Runs(r.Context(), run.Filter{Story: q.Get("story"), Subject: q.Get("subject"), Open: open, Limit: int(limit)})
		s.record(w, r, runList{append([]run.Record{}, list...)}, err)
	}
}

func (s *Server) showRun(b Runs) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found, err := b.Run(r.Context(), r.PathValue("id"))
		s.record(w, r, found, err)
	}
}

func (s *Server) startRun(b Runs) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var begun run.Record
		if !s.read(w, r, machine.MaxDocument, &begun) {
			return
		}
		if begun.ID != r.PathValue("id") || begun.ID == "" || begun.Story == "" || begun.Started.IsZero() {
			s.refuse(w, r, refusal{http.StatusBadRequest, string(machine.CodeDocument), "a run has an ID, a story and a start", ""})
			return
		}
		s.record(w, r, struct{}{}, b.StartRun(r.Context(), begun))
	}
}

func (s *Server) setStep(b Runs) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var step run.Step
		if !s.read(w, r, machine.MaxDocument, &step) {
			return
		}
		step.Name = r.PathValue("step")
		s.record(w, r, struct{}{}, b.SetStep(r.Context(), r.PathValue("id"), step))
	}
}

func (s *Server) endRun(b Runs) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var end struct {
			Outcome string    `json:"outcome"`
			At      time.Time `json:"at"`
		}
		if !s.read(w, r, maxSmall, &end) {
			return
		}
		s.record(w, r, struct{}{}, b.EndRun(r.Context(), r.PathValue("id"), end.Outcome, end.At))
	}
}
