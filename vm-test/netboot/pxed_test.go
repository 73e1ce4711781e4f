package netboot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/netns"
)

// server is a pxed, and the operator's programs that talk to it.
type server struct {
	lab    *lab
	host   *netns.Host // where it runs; nil is the test's own
	at     netip.Addr
	socket string
	args   []string
	log    string
	cmd    *exec.Cmd
	over   chan struct{} // closed when it has ended
}

// serve starts pxed with a state of its own.
func (l *lab) serve(t *testing.T, mode pxe.Mode) *server {
	t.Helper()
	s := &server{lab: l, at: netip.MustParsePrefix(address).Addr()}
	return s.serve(t, "pxed", l.bridge, "--mode", string(mode))
}

// serve starts it on an interface. Its files are named after it.
func (s *server) serve(t *testing.T, name, on string, more ...string) *server {
	t.Helper()
	l := s.lab
	s.log, s.socket = l.path(name+".log"), l.path(name+".sock")
	s.args = append([]string{"serve", "-p", l.profilePath, "--image", l.images, "-i", on,
		"--state", l.path(name), "--socket", s.socket, "--log", "text", "-v"}, more...)
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, interesting(s.said(t)))
		}
	})
	s.start(t)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(filepath.Join(s.lab.bin, "pxed"), s.args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.host != nil {
		s.cmd = s.host.Command(context.Background(), s.cmd.Path, s.args...)
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("%v\nhint: run make build", err)
	}
	s.over = make(chan struct{})
	go func(cmd *exec.Cmd, over chan struct{}) {
		cmd.Wait()
		close(over)
	}(s.cmd, s.over)
	s.until(t, "pxed answers", func() (bool, string) {
		out, err := s.ask("status")
		return err == nil, string(out)
	})
}

// kill ends pxed as a loss of power would.
func (s *server) kill() {
	s.cmd.Process.Kill() // it is ours; an error means that it has ended
	<-s.over
}

// interesting leaves out what the ledger says about itself.
func interesting(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "part=dqlite") && !strings.Contains(line, "from=socket") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func (s *server) said(t *testing.T) string { return string(read(t, s.log)) }

// ask runs a command of pxed.
func (s *server) ask(args ...string) ([]byte, error) {
	cmd := exec.Command(filepath.Join(s.lab.bin, "pxed"), append(args, "--socket", s.socket, "-o", "json")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("pxed %s: %w: %s", strings.Join(args, " "), err, said.Bytes())
	}
	return out, err
}

// must runs a command that must succeed, and decodes what it prints into v.
func (s *server) must(t *testing.T, v any, args ...string) {
	t.Helper()
	out, err := s.ask(args...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, v); err != nil {
		t.Fatalf("pxed %s: %v: %s", args, err, out)
	}
}

func (s *server) arm(t *testing.T, args ...string) {
	t.Helper()
	var m desk.Machine
	s.must(t, &m, append([]string{"arm", nodeName}, args...)...)
	if m.State != "armed" {
		t.Fatalf("%s is %s after it was armed", nodeName, m.State)
	}
}

func (s *server) disarm(t *testing.T) {
	t.Helper()
	if _, err := s.ask("disarm", nodeName); err != nil {
		t.Error(err)
	}
}

func (s *server) show(t *testing.T) desk.Machine {
	t.Helper()
	var m desk.Machine
	s.must(t, &m, "show", nodeName)
	return m
}

func (s *server) events(t *testing.T) []desk.Event {
	t.Helper()
	out, err := s.ask("events")
	if err != nil {
		t.Fatal(err)
	}
	var all []desk.Event
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var e desk.Event
		if d.Decode(&e) != nil {
			return all
		}
		all = append(all, e)
	}
}

// until waits for something that a look tells.
func (s *server) until(t *testing.T, what string, look func() (bool, string)) {
	t.Helper()
	var last string
	for over := time.Now().Add(limit); time.Now().Before(over); {
		done, state := look()
		if done {
			return
		}
		last = state
		select {
		case <-s.over:
			t.Fatalf("waiting until %s: pxed has ended", what)
		case <-t.Context().Done():
			t.Fatalf("waiting until %s: the test is over", what)
		case <-time.After(200 * time.Millisecond):
		}
	}
	t.Fatalf("waiting until %s: not in %s; last: %s", what, limit, last)
}

// logs waits until pxed's log has a line with all words behind a position, and
// returns where that line ends.
func (s *server) logs(t *testing.T, from int, words ...string) int {
	t.Helper()
	end := 0
	s.until(t, fmt.Sprintf("pxed logs %q", words), func() (bool, string) {
		at := from
		for line := range strings.Lines(s.said(t)[from:]) {
			at += len(line)
			if hasAll(line, words) {
				end = at
				return true, ""
			}
		}
		return false, interesting(s.said(t)[from:])
	})
	return end
}

func hasAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// url is where its HTTP listens.
func (s *server) url() string { return "http://" + netip.AddrPortFrom(s.at, 8080).String() }

// page is what its web page shows.
func (s *server) page(t *testing.T) string {
	t.Helper()
	resp, err := http.Get(s.url() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
