package hosttool

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
)

func TestFindNamesThePackage(t *testing.T) {
	if p, err := Find("sh"); err != nil || p == "" {
		t.Errorf("sh: %q, %v", p, err)
	}
	_, err := Find("no-such-program")
	if !errors.Is(err, ErrMissing) || !strings.Contains(diag.HintOf(err), "make deps") {
		t.Errorf("got %v with hint %q", err, diag.HintOf(err))
	}
}

func TestRunHasACleanEnvironment(t *testing.T) {
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	t.Setenv("TZ", "Pacific/Chatham")
	t.Setenv("SECRET", "canary")
	out, err := Output(t.Context(), Cmd{Name: "env", Epoch: 42, Env: []string{"EXTRA=1"}})
	if err != nil {
		t.Fatal(err)
	}
	env := string(out)
	for _, want := range []string{"LC_ALL=C.UTF-8\n", "TZ=UTC\n", "SOURCE_DATE_EPOCH=42\n", "EXTRA=1\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %q in\n%s", want, env)
		}
	}
	if strings.Contains(env, "canary") {
		t.Error("the caller's environment shows through")
	}
}

func TestRunQuotesWhatTheToolSaid(t *testing.T) {
	var all bytes.Buffer
	err := Run(t.Context(), Cmd{Name: "sh", Args: []string{"-c", "echo first >&2; echo the reason >&2; exit 3"}, Stderr: &all})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("got %v", err)
	}
	if all.String() != "first\nthe reason\n" {
		t.Errorf("standard error was %q", all.String())
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	stop := errors.New("stopped by hand")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
	if err := Run(ctx, Cmd{Name: "sleep", Args: []string{"60"}}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var b tailBuffer
	for range 1000 {
		b.Write([]byte("0123456789"))
	}
	b.Write([]byte("the end"))
	if got := b.said(); len(got) > 5<<10 || !strings.HasSuffix(got, "the end") {
		t.Errorf("kept %d bytes ending in %q", len(got), got[max(0, len(got)-20):])
	}
}
