package httpsource

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
)

func source(t *testing.T, h http.HandlerFunc) *Source {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s, err := New(Options{Server: server.URL + "/", Ticket: "secret", Client: &http.Client{Transport: Transport()}, Stall: time.Minute, Small: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What an answer means: whether another try can help, and whose words are shown.
func TestAnswers(t *testing.T) {
	for status, want := range map[int]error{
		200: nil, 204: nil, 400: install.ErrAnswer, 401: install.ErrTicket, 403: install.ErrTicket, 404: install.ErrAnswer,
		408: nil, 409: install.ErrTicket, 410: install.ErrTicket, 429: nil, 500: nil, 503: nil,
	} {
		s := source(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != machine.PathProgress {
				t.Errorf("asked %s with %q", r.URL, r.Header.Get("Authorization"))
			}
			w.WriteHeader(status)
			if status != http.StatusNoContent {
				_, _ = io.WriteString(w, `{"error":"the reason","hint":"what to do"}`)
			}
		})
		err := s.Progress(t.Context(), machine.Progress{})
		switch {
		case status/100 == 2:
			if err != nil {
				t.Errorf("%d: %v", status, err)
			}
			continue
		case err == nil || !strings.Contains(err.Error(), "the reason") || diag.HintOf(err) != "what to do":
			t.Errorf("%d: %v", status, err)
		}
		if got := errors.Is(err, install.ErrTicket) || errors.Is(err, install.ErrAnswer); got != (want != nil) || want != nil && !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", status, err, want)
		}
	}
}

func TestRange(t *testing.T) {
	const content = "0123456789"
	s := source(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/artifacts/a/image.zst" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
	})
	for _, offset := range []int64{0, 1, 9} {
		body, err := s.Open(t.Context(), "a/image.zst", offset)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != content[offset:] {
			t.Errorf("from %d: %q, %v", offset, got, err)
		}
		body.Close()
	}
	if _, err := s.Open(t.Context(), "a/image.zst", 10); !errors.Is(err, install.ErrAnswer) {
		t.Errorf("behind the end: %v", err)
	}
}

// A server that answers another range than was asked for is not believed.
func TestWrongRange(t *testing.T) {
	s := source(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", "bytes 4-9/10")
		w.WriteHeader(http.StatusPartialContent)
	})
	if _, err := s.Open(t.Context(), "x", 5); err == nil || !strings.Contains(err.Error(), "bytes 4-9/10") {
		t.Errorf("%v", err)
	}
}

func TestTicketOfAnother(t *testing.T) {
	id := "other"
	s := source(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":"`+id+`","node":"n1"}`) })
	if _, err := s.Ticket(t.Context()); !errors.Is(err, install.ErrTicket) {
		t.Errorf("%v", err)
	}
	id = ""
	if ticket, err := s.Ticket(t.Context()); err != nil || ticket.ID != "secret" {
		t.Errorf("%+v, %v", ticket, err)
	}
}

// When a server does not answer the next is asked, and stays the one that is asked.
func TestNextServer(t *testing.T) {
	var asked []string
	handler := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, name)
			_, _ = io.WriteString(w, `{"node":"n1"}`)
		}
	}
	first, second := httptest.NewServer(handler("first")), httptest.NewServer(handler("second"))
	defer second.Close()
	s, err := New(Options{Server: first.URL + "," + second.URL, Client: &http.Client{Transport: Transport()}, Stall: time.Minute, Small: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := s.Ticket(t.Context())
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	first.Close()
	next := "asking " + strings.TrimPrefix(second.URL, "http://") + " next"
	if err := ask(); err == nil || errors.Is(err, install.ErrTicket) || !strings.Contains(err.Error(), next) {
		t.Fatalf("%v, want one with %q", err, next)
	}
	for range 2 {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if body, err := s.Open(t.Context(), "x", 0); err != nil {
		t.Error(err)
	} else {
		body.Close()
	}
	if got := strings.Join(asked, " "); got != "first second second second" {
		t.Errorf("asked: %s", got)
	}
}

// A server that dies in the middle of a file is followed by the next one.
func TestNextServerInTheMiddle(t *testing.T) {
	const content = "0123456789"
	dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, content[:4])
	}))
	defer dying.Close()
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
	}))
	defer good.Close()
	s, err := New(Options{Server: dying.URL + "," + good.URL, Client: &http.Client{Transport: Transport()}, Stall: time.Minute, Small: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	body, err := s.Open(t.Context(), "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(body)
	body.Close()
	if err == nil || !strings.Contains(err.Error(), "the link was cut; asking ") {
		t.Errorf("%q, %v", got, err)
	}
	if body, err = s.Open(t.Context(), "x", int64(len(got))); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(body)
	body.Close()
	if string(got)+string(rest) != content || err != nil {
		t.Errorf("%q and %q, %v", got, rest, err)
	}
}

func TestServerIsAURL(t *testing.T) {
	for _, bad := range []string{"", "10.0.0.1:8080", "ftp://x", "http://", ":", "http://10.0.0.1:8080,10.0.0.2"} {
		if _, err := New(Options{Server: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
