package home

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

// server answers with the given statuses in turn, the last one for ever.
func server(t *testing.T, statuses ...int) (machine.Home, *[]machine.Ready) {
	t.Helper()
	var got []machine.Ready
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ready machine.Ready
		if r.Method != http.MethodPost || r.URL.Path != machine.PathHealth || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("asked %s %s as %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		if err := json.NewDecoder(r.Body).Decode(&ready); err != nil {
			t.Error(err)
		}
		status := statuses[min(len(got), len(statuses)-1)]
		got = append(got, ready)
		w.WriteHeader(status)
		w.Write([]byte(`{"error":"this ticket is not known"}`))
	}))
	t.Cleanup(s.Close)
	return machine.Home{Server: s.URL, Ticket: "secret"}, &got
}

func TestTell(t *testing.T) {
	h, got := server(t, http.StatusOK)
	want := machine.Ready{Node: "n1", MachineID: "id", HostKeys: []string{"ssh-ed25519 A"}, Slot: "a", RootHash: "00"}
	if err := Tell(t.Context(), h, want, 0); err != nil {
		t.Fatal(err)
	}
	if len(*got) != 1 || (*got)[0].Node != "n1" || (*got)[0].HostKeys[0] != "ssh-ed25519 A" {
		t.Errorf("heard %+v", *got)
	}
}

func TestTellAgainUntilHeard(t *testing.T) {
	h, got := server(t, http.StatusServiceUnavailable, http.StatusOK)
	if err := Tell(t.Context(), h, machine.Ready{Node: "n1"}, time.Minute); err != nil || len(*got) != 2 {
		t.Errorf("%v after %d tries", err, len(*got))
	}
}

// Of several who share a ledger, the next hears it when one is away.
func TestTellAnother(t *testing.T) {
	h, got := server(t, http.StatusOK)
	h.Server = "http://127.0.0.1:1," + h.Server // tcpmux: nobody listens there
	if err := Tell(t.Context(), h, machine.Ready{Node: "n1"}, 0); err != nil || len(*got) != 1 {
		t.Errorf("%v, heard %+v", err, *got)
	}
}

// A no is not asked for twice, and comes with the other side's words.
func TestTellRefused(t *testing.T) {
	h, got := server(t, http.StatusUnauthorized)
	err := Tell(t.Context(), h, machine.Ready{Node: "n1"}, time.Minute)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "this ticket is not known") || len(*got) != 1 {
		t.Errorf("%v after %d tries", err, len(*got))
	}
	if err := Tell(t.Context(), machine.Home{Server: "nowhere"}, machine.Ready{}, time.Minute); !errors.Is(err, ErrRefused) {
		t.Errorf("no address: %v", err)
	}
}

func TestRemember(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway", "reported")
	first, second := machine.Home{Ticket: "1"}, machine.Home{Ticket: "2"}
	if Remembered(path, first) {
		t.Error("heard before anything was said")
	}
	if err := Remember(path, first); err != nil {
		t.Fatal(err)
	}
	if !Remembered(path, first) || Remembered(path, second) {
		t.Error("the mark is not that of the first install")
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home.json")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"server":"http://10.0.2.2:8080","ticket":"t"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := Read(path); err != nil || h.Server != "http://10.0.2.2:8080" || h.Ticket != "t" {
		t.Errorf("%+v, %v", h, err)
	}
}
