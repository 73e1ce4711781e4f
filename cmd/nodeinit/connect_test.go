package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	told "github.com/slipway/slipway/internal/bootstrap/facts"
)

// answer reads to the end of a request and answers it.
func answer(t *testing.T, l net.Listener) {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				asked, _ := io.ReadAll(c)
				c.Write([]byte("you said " + string(asked)))
			}()
		}
	}()
}

func TestConnect(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	unix, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	answer(t, unix)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answer(t, tcp)
	for _, at := range []string{"unix:" + socket, "tcp:" + tcp.Addr().String()} {
		var out, talk bytes.Buffer
		if code := run([]string{"connect", "--greet", at}, strings.NewReader("hello"), &out, &talk); code != 0 || out.String() != "connected\nyou said hello" {
			t.Errorf("%s: exit code %d, %q, %s", at, code, out.String(), talk.String())
		}
	}
	for at, want := range map[string]int{"unix:" + socket + "-none": 1, "udp:x": 2, "x": 2} {
		if code, stdout, stderr := call("connect", "--greet", at); code != want || stdout != "" || stderr == "" {
			t.Errorf("%s: exit code %d, %q, %q", at, code, stdout, stderr)
		}
	}
}

func TestFacts(t *testing.T) {
	code, stdout, stderr := call("facts", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	f, err := told.Read([]byte(stdout))
	if err != nil || len(f.Missing) == 0 || f.Clock.Now.IsZero() || strings.Contains(stdout, "null") {
		t.Errorf("%v\n%s", err, stdout)
	}
	if _, stdout, _ := call("facts"); !strings.Contains(stdout, "machine id") {
		t.Errorf("%s", stdout)
	}
}

func TestData(t *testing.T) {
	if code, stdout, _ := call("data"); code != 0 || !strings.Contains(stdout, "no data disks") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	code, stdout, _ := call("data", "-o", "json")
	var d told.Data
	if err := json.Unmarshal([]byte(stdout), &d); code != 0 || err != nil || d.Format != told.DataFormat {
		t.Errorf("exit code %d, %v\n%s", code, err, stdout)
	}
	if code, _, stderr := call("data", "make"); code == 0 || stderr == "" {
		t.Errorf("without being told which: exit code %d, %q", code, stderr)
	}
}

func TestGenerator(t *testing.T) {
	if !isGenerator("/usr/lib/systemd/system-generators/slipway-data") || isGenerator("/usr/bin/slipway-node") {
		t.Error("the name is mistaken")
	}
	var talk bytes.Buffer
	if code := generate(nil, &talk); code != 2 {
		t.Errorf("exit code %d, %s", code, talk.String())
	}
	if code := generate([]string{t.TempDir(), "x", "y"}, &talk); code != 0 {
		t.Errorf("exit code %d, %s", code, talk.String())
	}
}
