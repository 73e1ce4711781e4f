package metrics

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestNumbers(t *testing.T) {
	var broken error
	m := New(func(context.Context) (map[string]int, error) {
		return map[string]int{"armed": 2, "installed": 1}, broken
	})
	m.Booted("install")
	m.Booted("install")
	m.Refused("used")
	m.Served("GET /artifacts/", 206, 1000, 20*time.Millisecond)
	m.Served("", 404, 10, time.Millisecond)
	text := scrape(t, m)
	for _, want := range []string{
		`slipway_boots_total{action="install"} 2`, `slipway_refusals_total{code="used"} 1`,
		`slipway_http_requests_total{route="GET /artifacts/",status="206"} 1`, `slipway_http_bytes_total{route="GET /artifacts/"} 1000`,
		`slipway_http_requests_total{route="none",status="404"} 1`, `slipway_machines{state="armed"} 2`, "process_resident_memory_bytes",
	} {
		if !strings.Contains(text, want+"\n") && !strings.Contains(text, want+" ") {
			t.Errorf("no %s", want)
		}
	}
	broken = errors.New("no majority")
	if text := scrape(t, m); strings.Contains(text, "slipway_machines{") || !strings.Contains(text, "slipway_boots_total") {
		t.Errorf("with a broken ledger:\n%s", text)
	}
}
