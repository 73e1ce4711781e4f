package runlock

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

const envPath = "SLIPWAY_TEST_LOCK"

// TestMain lets the test start itself as the process that holds the lock.
func TestMain(m *testing.M) {
	path := os.Getenv(envPath)
	if path == "" {
		os.Exit(m.Run())
	}
	if _, err := Take(path, Self(time.Now())); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	select {} // until it is killed
}

func hold(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "up", "-p", "lab.yaml")
	cmd.Env = append(os.Environ(), envPath+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd
}

func TestSecondRunIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "run.lock")
	first := hold(t, path)
	_, err := Take(path, Self(time.Now()))
	var other *HeldError
	if !errors.As(err, &other) {
		t.Fatalf("%v", err)
	}
	host, _ := os.Hostname()
	h := other.Holder
	if h.PID != first.Process.Pid || h.Host != host || h.Since.IsZero() || !strings.HasSuffix(h.Command, " up -p lab.yaml") {
		t.Errorf("%+v", h)
	}
	for _, word := range []string{fmt.Sprint("process ", h.PID, " on ", host, " since "), "up -p lab.yaml"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in %q", word, err)
		}
	}
	if exit.Of(err) != exit.Refused || diag.HintOf(err) == "" {
		t.Errorf("exit code %d, hint %q", exit.Of(err), diag.HintOf(err))
	}

	first.Process.Kill()
	first.Wait()
	l, err := Take(path, Self(time.Now()))
	if err != nil {
		t.Fatalf("after the first was killed: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	l, err = Take(path, Self(time.Now()))
	if err != nil {
		t.Fatalf("after it was released: %v", err)
	}
	l.Release()
}

// A file that says nothing, or nonsense, is no lock and no reason to fail.
func TestFileIsNotBelieved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.lock")
	for _, text := range []string{"", "garbage", `{"host":"elsewhere","pid":1,"since":"2020-01-01T00:00:00Z"}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Take(path, Holder{Host: "h", PID: 7, Command: "up"})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil { // while it is locked
			t.Fatal(err)
		}
		if _, err := Take(path, Self(time.Now())); exit.Of(err) != exit.Refused {
			t.Errorf("%q: %v", text, err)
		}
		l.Release()
	}
}

func TestUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(filepath.Join(file, "run.lock"), Self(time.Now())); err == nil {
		t.Error("a lock below a file")
	}
}
