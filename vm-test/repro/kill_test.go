package repro

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// killAt starts a build and kills it with SIGKILL somewhere between the two
// moments. It does not matter where it lands, nor whether the build was faster:
// what must hold holds at any moment.
func (w *workshop) killAt(t *testing.T, from, to time.Duration, more ...string) {
	t.Helper()
	moment := from + rand.N(to-from)
	ctx, cancel := context.WithTimeout(t.Context(), moment)
	defer cancel()
	o := w.build(ctx, t, more...)
	t.Logf("killed after %.1f s: exit code %d, last words %q", moment.Seconds(), o.code, lastLine(o.said))
	w.noProcessLeft(t)
	out := w.path("out", "lab")
	if _, err := os.Stat(out); errors.Is(err, fs.ErrNotExist) {
		return
	}
	checkComplete(t, out)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// noProcessLeft waits until no program that a build of this workshop has started
// is running: each has the workshop's TMPDIR in its environment.
func (w *workshop) noProcessLeft(t *testing.T) {
	t.Helper()
	const limit = 10 * time.Second
	deadline := time.Now().Add(limit)
	for {
		left := processesWith("TMPDIR=" + w.path("tmp"))
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("still running %s after the build was killed: %q", limit, left)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// processesWith lists the command lines of processes with this in their environment.
func processesWith(variable string) []string {
	var found []string
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	for _, name := range environs {
		env, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), append([]byte{0}, variable...)) {
			continue // gone, or another user's
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
	}
	return found
}

// survivesKills kills builds from their first moments to their last, and then
// lets one come to its end. Early kills hit a cold cache; the stages that were
// finished stay, so that later kills hit what comes after them.
func (w *workshop) survivesKills(t *testing.T) outcome {
	w.killAt(t, 0, 3*time.Second)
	w.killAt(t, 3*time.Second, 12*time.Second)
	w.killAt(t, 12*time.Second, 30*time.Second)
	o := w.succeed(t)
	checkComplete(t, w.path("out", "lab"))
	return o
}

// survivesKillsLate kills builds that replace an earlier one: the name must lead
// to the old one or to the new one, complete, at any moment.
func (w *workshop) survivesKillsLate(t *testing.T) {
	for range 4 {
		w.killAt(t, 200*time.Millisecond, 4*time.Second, "--node", "n2")
		w.killAt(t, 200*time.Millisecond, 4*time.Second, "--node", "n1")
	}
	w.succeed(t)
	checkComplete(t, w.path("out", "lab"))
	entries, err := os.ReadDir(w.path("out"))
	must(t, err)
	for _, e := range entries {
		if e.Name() != "lab" {
			t.Errorf("killed builds left %s beside the output", e.Name())
		}
	}
}
