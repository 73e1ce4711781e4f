package httpd

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/ledger/ledgertest"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/keep"
)

func bookLab(t *testing.T) *lab {
	t.Helper()
	kept, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	return newLab(t, func(_ *desk.Options, o *Options) { o.Book = keep.Book{Ledger: kept} })
}

// What bootstrap keeps is for operators only.
func TestBookIsForOperators(t *testing.T) {
	l, none := bookLab(t), newLab(t)
	for _, ask := range []struct{ method, path string }{
		{"GET", "/api/v1/clusters/lab"}, {"PUT", "/api/v1/clusters/lab"}, {"DELETE", "/api/v1/clusters/lab?ca=" + ledgertest.Cluster().CA.Hex()},
		{"GET", "/api/v1/runs"}, {"GET", "/api/v1/runs/r"}, {"PUT", "/api/v1/runs/r"}, {"PUT", "/api/v1/runs/r/steps/s"}, {"POST", "/api/v1/runs/r/end"},
	} {
		for _, token := range []string{"", "guessed"} {
			if status, body := l.do(ask.method, ask.path, token, "{}"); status != 401 || !strings.Contains(body, "operator's token") {
				t.Errorf("%s %s with %q: %d %s", ask.method, ask.path, token, status, body)
			}
		}
		if status, _ := none.do(ask.method, ask.path, operatorToken, "{}"); status != 404 {
			t.Errorf("%s %s without a book: %d", ask.method, ask.path, status)
		}
	}
}

func TestBookRefusesNonsense(t *testing.T) {
	l := bookLab(t)
	good := ledgertest.Cluster()
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		want         string
	}{
		{"PUT", "/api/v1/clusters/prod", good, 400, "of another environment"},
		{"PUT", "/api/v1/clusters/lab", `{"environment":"lab"}`, 400, "has no CA"},
		{"PUT", "/api/v1/clusters/lab", `{"environment":"lab","ca":"short"}`, 400, "not a sha256 digest"},
		{"PUT", "/api/v1/clusters/lab", `{"environment":"lab","secret":"x"}`, 400, "unknown field"},
		{"PUT", "/api/v1/clusters/lab", `{"environment":"` + strings.Repeat("x", 300<<10) + `"}`, 413, "too large"},
		{"DELETE", "/api/v1/clusters/lab", nil, 400, "which cluster is meant"},
		{"GET", "/api/v1/clusters/lab", nil, 404, "no-such-record"},
		{"GET", "/api/v1/runs?limit=-1", nil, 400, "limit"},
		{"GET", "/api/v1/runs?open=perhaps", nil, 400, "open is true or false"},
		{"GET", "/api/v1/runs?open=1&limit=5", nil, 200, `{"runs":[]}`},
		{"PUT", "/api/v1/runs/r", `{"id":"another","story":"up","started":"2026-05-01T10:00:00Z","owner":""}`, 400, "a run has an ID"},
		{"PUT", "/api/v1/runs/r", `{"id":"r","story":"up","owner":""}`, 400, "a run has an ID"},
		{"PUT", "/api/v1/runs/r/steps/s", `{"state":"done"}`, 404, "no-such-record"},
		{"POST", "/api/v1/runs/r/end", `{"outcome":"done"}`, 404, "no-such-record"},
		{"GET", "/api/v1/runs/r", nil, 404, "no-such-record"},
	} {
		if status, body := l.do(c.method, c.path, operatorToken, c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s, want %d %q", c.method, c.path, status, body, c.status, c.want)
		}
	}
}
