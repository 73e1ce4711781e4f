package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/run"
)

func clusterPath(environment string) string { return "/api/v1/clusters/" + url.PathEscape(environment) }

func runPath(id string) string { return "/api/v1/runs/" + url.PathEscape(id) }

// Cluster is what was recorded of the cluster of an environment. Where there is
// nothing, the error is a Refused with status 404; so it is with runs.
func (c *Client) Cluster(ctx context.Context, environment string) (identity.Cluster, error) {
	var found identity.Cluster
	err := c.ask(ctx, http.MethodGet, clusterPath(environment), nil, &found)
	return found, err
}

// PutCluster records a cluster as it was seen.
func (c *Client) PutCluster(ctx context.Context, seen identity.Cluster) error {
	return c.tell(ctx, http.MethodPut, clusterPath(seen.Environment), seen)
}

// ForgetCluster drops the record of a cluster that is gone.
func (c *Client) ForgetCluster(ctx context.Context, environment string, ca digest.Digest) error {
	return c.tell(ctx, http.MethodDelete, clusterPath(environment)+"?ca="+ca.Hex(), nil)
}

// Runs are the newest runs that a filter chooses, without their steps.
func (c *Client) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	q := url.Values{"story": {f.Story}, "subject": {f.Subject}, "open": {strconv.FormatBool(f.Open)}, "limit": {strconv.Itoa(f.Limit)}}
	var out struct {
		Runs []run.Record `json:"runs"`
	}
	err := c.ask(ctx, http.MethodGet, "/api/v1/runs?"+q.Encode(), nil, &out)
	return out.Runs, err
}

// Run is one run with its steps.
func (c *Client) Run(ctx context.Context, id string) (run.Record, error) {
	var found run.Record
	err := c.ask(ctx, http.MethodGet, runPath(id), nil, &found)
	return found, err
}

// StartRun writes a run down; the same ID again changes nothing.
func (c *Client) StartRun(ctx context.Context, r run.Record) error {
	return c.tell(ctx, http.MethodPut, runPath(r.ID), r)
}

// SetStep writes down how far a step has come.
func (c *Client) SetStep(ctx context.Context, id string, s run.Step) error {
	return c.tell(ctx, http.MethodPut, runPath(id)+"/steps/"+url.PathEscape(s.Name), s)
}

// EndRun writes down how a run ended.
func (c *Client) EndRun(ctx context.Context, id, outcome string, at time.Time) error {
	end := struct {
		Outcome string    `json:"outcome"`
		At      time.Time `json:"at"`
	}{outcome, at}
	return c.tell(ctx, http.MethodPost, runPath(id)+"/end", end)
}

// tell is a question whose answer says no more than that it was done.
func (c *Client) tell(ctx context.Context, method, path string, body any) error {
	var none struct{}
	return c.ask(ctx, method, path, body, &none)
}
