package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pxed": main})
}

// TestScripts runs every testdata/script/*.txtar as a person would use the
// program. Each has the repository's profiles, a signed build and its key, and
// free ports; pxed finds its socket by the environment.
//
//	ready              waits until the pxed at $HTTP answers
//	boot MAC SERIAL    asks for a boot script as iPXE does; it is stdout
//	report MAC SERIAL  sends an inventory; the answer is stdout
//	claim MAC SERIAL   boots a machine into its installer, up to its ticket
//	finish SERIAL      lets the machine that has claimed send its receipt
func TestScripts(t *testing.T) {
	profiles, err := filepath.Abs("../../profiles")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               func(e *testscript.Env) error { return setup(t, e, profiles) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ready": ready, "boot": boot, "report": report, "claim": claim, "finish": finish,
		},
	})
}

func setup(t *testing.T, e *testscript.Env, profiles string) error {
	if err := os.CopyFS(filepath.Join(e.WorkDir, "profiles"), os.DirFS(profiles)); err != nil {
		return err
	}
	build := buildtest.Write(t, buildtest.Contents())
	key, err := artifact.FormatKey(buildtest.Public(), "test")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(e.WorkDir, "key.pub"), []byte(key), 0o644); err != nil {
		return err
	}
	// A path of a unix socket has at most 107 bytes.
	short, err := os.MkdirTemp("", "pxed")
	if err != nil {
		return err
	}
	e.Defer(func() { os.RemoveAll(short) })
	e.Setenv("BUILD", build)
	for _, name := range []string{"HTTP", "HTTP2", "HTTP3", "LEDGER1", "LEDGER2", "LEDGER3"} {
		e.Setenv(name, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	}
	e.Setenv(envSocket, filepath.Join(short, "s"))
	e.Setenv("SOCKET2", filepath.Join(short, "s2"))
	e.Setenv("SOCKET3", filepath.Join(short, "s3"))
	return nil
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// within is the longest that a script waits.
const within = 30 * time.Second

func ready(ts *testscript.TestScript, neg bool, args []string) {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get("http://" + ts.Getenv("HTTP") + "/healthz")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return
		}
	}
	ts.Fatalf("no pxed within %s", within)
}

func boot(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: boot MAC SERIAL")
	}
	answer, err := http.Get("http://" + ts.Getenv("HTTP") + machine.PathBoot + "?firmware=uefi&mac=" + args[0] + "&serial=" + args[1])
	ts.Check(err)
	say(ts, answer)
}

func report(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: report MAC SERIAL")
	}
	body, err := json.Marshal(desktest.Report(args[0], args[1]))
	ts.Check(err)
	answer, err := http.Post("http://"+ts.Getenv("HTTP")+machine.PathReport, "application/json", bytes.NewReader(body))
	ts.Check(err)
	say(ts, answer)
}

// say makes an answer the standard output of the script's command.
func say(ts *testscript.TestScript, answer *http.Response) {
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if answer.StatusCode != http.StatusOK {
		ts.Fatalf("%s: %s", answer.Status, strings.TrimSpace(string(body)))
	}
	_, err = ts.Stdout().Write(body)
	ts.Check(err)
}

func claim(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: claim MAC SERIAL")
	}
	var script string
	talk(ts, "GET", machine.PathBoot+"?firmware=uefi&mac="+args[0]+"&serial="+args[1], nil, &script)
	_, rest, ok := strings.Cut(script, machine.WordTicket+"=")
	if !ok {
		ts.Fatalf("no installer: %s", script)
	}
	token, _, _ := strings.Cut(rest, " ")
	ts.Setenv("TICKET", token)
	talk(ts, "POST", machine.PathReport, desktest.Report(args[0], args[1]), nil)
	var t machine.Ticket
	talk(ts, "GET", machine.PathTicket, nil, &t)
	talk(ts, "POST", machine.PathProgress, machine.Progress{Stage: machine.StageWrite, Done: 1, Total: 3}, nil)
}

func finish(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: finish SERIAL")
	}
	var t machine.Ticket
	talk(ts, "GET", machine.PathTicket, nil, &t)
	var seed machine.Seed
	talk(ts, "GET", machine.PathSeed, nil, &seed)
	talk(ts, "POST", machine.PathReceipt, desktest.Receipt(t, args[0]), nil)
}

// talk is a machine's request with the ticket $TICKET. Like the installer, it asks
// again while pxed cannot decide.
func talk(ts *testscript.TestScript, method, path string, body, into any) {
	data, err := json.Marshal(body)
	ts.Check(err)
	for end := time.Now().Add(within); ; time.Sleep(200 * time.Millisecond) {
		r, err := http.NewRequest(method, "http://"+ts.Getenv("HTTP")+path, bytes.NewReader(data))
		ts.Check(err)
		r.Header.Set("Authorization", "Bearer "+ts.Getenv("TICKET"))
		answer, err := http.DefaultClient.Do(r)
		ts.Check(err)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		ts.Check(err)
		if answer.StatusCode == http.StatusServiceUnavailable && time.Now().Before(end) {
			continue
		}
		if answer.StatusCode != http.StatusOK {
			ts.Fatalf("%s %s: %s: %s", method, path, answer.Status, strings.TrimSpace(string(text)))
		}
		if s, ok := into.(*string); ok {
			*s = string(text)
		} else if into != nil {
			ts.Check(json.Unmarshal(text, into))
		}
		return
	}
}
