package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/pxed/desk"
)

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := Remote(s.URL+"/", "token")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A stream that is cut is taken up again behind the last event.
func TestFollowGoesOn(t *testing.T) {
	var cursors []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cursors = append(cursors, r.Header.Get("Last-Event-ID"))
		fmt.Fprintf(w, ": alive\n\nid: %[1]d\ndata: {\"seq\":%[1]d,\"kind\":\"boot\"}\n\n", len(cursors)*10)
	})
	enough := errors.New("enough")
	var got []int64
	err := c.Follow(t.Context(), 3, func(e desk.Event) error {
		if got = append(got, e.Seq); len(got) == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || !slices.Equal(got, []int64{10, 20}) || !slices.Equal(cursors, []string{"3", "10"}) {
		t.Errorf("%v, %v, asked after %q", err, got, cursors)
	}
}

func TestRefusals(t *testing.T) {
	var status int
	var body string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			t.Error("no token was sent")
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
	for _, want := range []struct {
		status int
		body   string
		text   string
		hint   string
		code   exit.Code
	}{
		{403, `{"error":"design-only","hint":"set it active","code":"design"}`, "design-only", "set it active", exit.Refused},
		{409, `{"error":"two machines","code":"conflict"}`, "two machines", "", exit.Refused},
		{400, `{"error":"bad","code":"order"}`, "bad", "", exit.Usage},
		{404, `{"error":"no n9","code":"no-such-node"}`, "no n9", "", exit.Usage},
		{404, `{"error":"nothing at /x","hint":"see","code":"not-found"}`, "nothing at /x", "see", exit.Failed},
		{401, `{"error":"this needs the token","hint":"send a header","code":"unauthorized"}`, "this needs the token",
			"the token is not that of this pxed: copy what pxed token prints where it runs into a file (mode 0600), and name it with --token-file", exit.Failed},
		{502, `<html>`, "the answer was 502 Bad Gateway", notPxed, exit.Failed},
		{200, `<html>`, "reading the answer of", notPxed, exit.Failed},
	} {
		status, body = want.status, want.body
		_, err := c.Arm(t.Context(), "n1", desk.Order{})
		if err == nil || !strings.Contains(err.Error(), want.text) || diag.HintOf(err) != want.hint || exit.Of(err) != want.code {
			t.Errorf("%d %s: %v, hint %q, exit %d", want.status, want.body, err, diag.HintOf(err), exit.Of(err))
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	c := Socket(t.TempDir() + "/none")
	if _, err := c.Machines(t.Context()); diag.HintOf(err) == "" || !strings.Contains(err.Error(), "no pxed answers") {
		t.Errorf("%v", err)
	}
	if err := c.Follow(t.Context(), 7, func(desk.Event) error { return nil }); err == nil {
		t.Error("following nobody is no error")
	}
	for _, url := range []string{"", "pxed:8080", "ftp://h", "http://"} {
		if _, err := Remote(url, ""); exit.Of(err) != exit.Usage || diag.HintOf(err) == "" {
			t.Errorf("%q: %v", url, err)
		}
	}
	remote, err := Remote("http://no-such-host.invalid:1", "token")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Machines(t.Context()); err == nil || diag.HintOf(err) == "" {
		t.Errorf("a host that is not there: %v", err)
	}
}
