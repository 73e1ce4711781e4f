package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/node/persist"
	"github.com/slipway/slipway/internal/node/ready"
)

// call runs the program as the command line would.
func call(args ...string) (code int, stdout, stderr string) {
	var out, talk bytes.Buffer
	code = run(args, strings.NewReader(""), &out, &talk)
	return code, out.String(), talk.String()
}

func TestUsage(t *testing.T) {
	tests := []struct {
		args []string
		code int
		want string // on either stream
	}{
		{[]string{"--help"}, 0, "persist"},
		{[]string{"ready", "--help"}, 0, "--wait"},
		{[]string{"unknown"}, 2, "unknown command"},
		{[]string{"persist", "extra"}, 2, "persist --help"},
		{[]string{"ready", "--wait", "soon"}, 2, "ready --help"},
		{[]string{"status", "-o", "xml"}, 2, "text or json"},
	}
	for _, tt := range tests {
		code, stdout, stderr := call(tt.args...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s%s", tt.args, code, tt.code, tt.want, stdout, stderr)
		}
	}
	if _, stdout, _ := call("--help"); strings.Contains(stdout, "emergency") {
		t.Error("the command of emergency.service is offered to people")
	}
}

func TestPersist(t *testing.T) {
	code, stdout, _ := call("persist", "-o", "json")
	var entries []persist.Entry
	if err := json.Unmarshal([]byte(stdout), &entries); code != 0 || err != nil || len(entries) != len(persist.Table()) {
		t.Errorf("exit code %d, %v\n%s", code, err, stdout)
	}
	_, stdout, _ = call("persist")
	for _, e := range persist.Table() {
		if !strings.Contains(stdout, string(e.Kind)) || !strings.Contains(stdout, e.Path) {
			t.Errorf("the list lacks %s", e.Path)
		}
	}
}

// A build host was not started by nodeinit: the program says so.
func TestElsewhere(t *testing.T) {
	for _, name := range []string{"status", "check"} {
		code, _, stderr := call(name)
		if code != 1 || !strings.Contains(stderr, "hint: this system was not started by nodeinit") {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
	}
}

func TestVerdict(t *testing.T) {
	var out bytes.Buffer
	if err := writeReady(&out, "json", nil); err != nil || !strings.Contains(out.String(), `"missing": []`) {
		t.Errorf("%v\n%s", err, out.String())
	}
	missing := []ready.Missing{{Item: "user", What: "there is no user x"}}
	if verdict(nil, 0) != nil || verdict(missing, 0) == nil || verdict(missing, 1) == nil {
		t.Error("ready and missing are mixed up")
	}
}
