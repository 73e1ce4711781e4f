package web

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
)

func page(t *testing.T) (*httptest.Server, *desk.Desk) {
	t.Helper()
	d := desk.New(desk.Options{Cluster: desktest.Cluster(), Image: desktest.Image(), Ledger: desktest.NewMemory(), Now: desktest.NewClock().Now, Discover: true})
	closing := make(chan struct{})
	h, err := New(d, closing)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() { close(closing); s.Close() })
	return s, d
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	w, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	var b strings.Builder
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		b.WriteString(lines.Text() + "\n")
	}
	return w, b.String()
}

// What machines say about themselves is shown, never run.
func TestHostileMachine(t *testing.T) {
	s, d := page(t)
	const evil = `"><script>alert(1)</script>`
	r := desktest.Report(desktest.Stranger, evil)
	r.Identity.Product, r.CPU.Model, r.NICs[0].Name = evil, evil, evil
	r.Disks[0].Serial, r.Disks[0].Content = evil, []machine.Signature{{Type: evil, Label: evil}}
	if _, err := d.Report(t.Context(), "", r); err != nil {
		t.Fatal(err)
	}
	_, body := get(t, s.URL+"/")
	if strings.Contains(body, "<script>alert") || !strings.Contains(body, "&lt;script&gt;alert(1)") {
		t.Error("a machine's words become part of the page")
	}
	if inline := regexp.MustCompile(`(?i)<[^>]* (style|on[a-z]+)=`).FindString(body); inline != "" {
		t.Errorf("the policy forbids what is inline: %s", inline)
	}
}

// A machine that came with a ticket that does not work says so on its card.
func TestTurnedAway(t *testing.T) {
	s, d := page(t)
	if _, err := d.Report(t.Context(), strings.Repeat("ab", 32), desktest.Report(desktest.MAC1, "sn-1")); err != nil {
		t.Fatal(err)
	}
	_, body := get(t, s.URL+"/")
	_, card, _ := strings.Cut(body, `id="node-n1"`)
	card, _, _ = strings.Cut(card, "</article>")
	if !strings.Contains(card, "turned away:") || !strings.Contains(card, "this ticket is not known") {
		t.Errorf("the card of n1 is\n%s", card)
	}
}

func TestHeaders(t *testing.T) {
	s, _ := page(t)
	for path, kind := range map[string]string{"/": "text/html", "/page/page.js": "text/javascript", "/page/page.css": "text/css", "/page/icon.svg": "image/svg+xml"} {
		w, body := get(t, s.URL+path)
		policy := w.Header.Get("Content-Security-Policy")
		if w.StatusCode != http.StatusOK || !strings.HasPrefix(w.Header.Get("Content-Type"), kind) || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s %v", path, w.Status, w.Header)
		}
		if outside := regexp.MustCompile(`(src|href|url\()="?https?:`).FindString(body); outside != "" {
			t.Errorf("%s loads from outside: %s", path, outside)
		}
	}
	for _, path := range []string{"/page/index.html", "/page/", "/page/../assets/index.html", "/nonesuch"} {
		if w, _ := get(t, s.URL+path); w.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, w.Status)
		}
	}
}

// A page that comes back is sent everything; after that only what changes.
func TestStreamSendsChanges(t *testing.T) {
	s, d := page(t)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/page/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	lines := bufio.NewScanner(w.Body)
	if first := names(t, lines, "order"); strings.Join(first, " ") != "node-n1 node-n2 node-n3" {
		t.Errorf("first %q", first)
	}
	if _, err := d.Arm(ctx, "n2", desk.Order{}); err != nil {
		t.Fatal(err)
	}
	// Which of the two is first depends on what the page was just doing.
	got := slices.Sorted(slices.Values(append(names(t, lines, ""), names(t, lines, "")...)))
	if strings.Join(got, " ") != "event-1 node-n2" {
		t.Errorf("then %q", got)
	}
}

// names reads a stream up to an event of a kind, or of any when that is "", and
// gives the names of the pieces until then.
func names(t *testing.T, lines *bufio.Scanner, last string) []string {
	t.Helper()
	var out []string
	kind := ""
	for lines.Scan() {
		if k, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = k
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if kind != "order" {
			var p piece
			if err := json.Unmarshal([]byte(data), &p); err != nil {
				t.Fatal(err)
			}
			out = append(out, p.Name)
		}
		if kind == last || last == "" {
			return out
		}
	}
	t.Fatalf("the stream ended after %q", out)
	return nil
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 200 << 20: "200 MiB", 3 << 30: "3.0 GiB", 5 << 40: "5.0 TiB", 5 << 50: "5120 TiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for s, want := range map[int]string{0: "0 s", 89: "89 s", 90: "2 min", 3600: "60 min"} {
		if got := secondsText(s); got != want {
			t.Errorf("%d: %s, want %s", s, got, want)
		}
	}
}
