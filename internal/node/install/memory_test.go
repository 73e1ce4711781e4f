package install_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
	"github.com/slipway/slipway/internal/node/install/httpsource"
)

// maxMemory is what an install may take at its peak, in KiB of resident memory.
const maxMemory = 128 << 10

// An install runs beside nothing else, on machines with 512 MiB. This program is
// started once more, alone, and tells the most memory it ever had.
func TestMemory(t *testing.T) {
	if os.Getenv("INSTALL_URL") != "" {
		installHere(t)
		return
	}
	r := newRig(t)
	report, err := json.Marshal(r.report)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemory$", "-test.v")
	cmd.Env = append(os.Environ(), "INSTALL_URL="+r.url, "INSTALL_TICKET="+r.server.Ticket.ID, "INSTALL_DISK="+r.path(), "INSTALL_REPORT="+string(report), "GOMEMLIMIT=96MiB")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.installed()
	_, rest, _ := strings.Cut(string(out), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no peak in\n%s", out)
	}
	peak, err := strconv.Atoi(fields[0])
	if err != nil || peak > maxMemory {
		t.Errorf("peak of %d KiB (%v), more than %d", peak, err, maxMemory)
	}
	t.Logf("peak of %d MiB", peak>>10)
}

func installHere(t *testing.T) {
	var report machine.Report
	if err := json.Unmarshal([]byte(os.Getenv("INSTALL_REPORT")), &report); err != nil {
		t.Fatal(err)
	}
	source, err := httpsource.New(httpsource.Options{
		Server: os.Getenv("INSTALL_URL"), Ticket: os.Getenv("INSTALL_TICKET"),
		Client: &http.Client{Transport: httpsource.Transport()}, Stall: time.Minute, Small: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	env := install.Env{
		Screen: &screen{}, Clock: &clock{now: time.Now()}, Random: rand.Reader, Workers: 4,
		Sleep:    func(context.Context, time.Duration) error { return nil },
		Patience: install.Patience{Tries: 3},
	}
	result := install.Run(t.Context(), env, source, &disks{paths: map[string]string{"vda": os.Getenv("INSTALL_DISK")}}, report)
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM:") {
			t.Log(line)
		}
	}
}
