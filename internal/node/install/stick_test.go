package install_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
	"github.com/slipway/slipway/internal/node/install/bundle"
)

// stick writes a bundle with two nodes and makes the machine of the rig one of them.
func stick(t *testing.T, r *rig) string {
	t.Helper()
	dir := t.TempDir()
	other := r.server.Ticket
	other.Node, other.ID = "n2", strings.Repeat("cd", 32)
	nodes := []bundle.Node{
		{Ticket: r.server.Ticket, Machine: bundle.Machine{MACs: []string{"52:54:00:12:34:56"}}, Seed: r.server.Seed},
		{Ticket: other, Machine: bundle.Machine{MACs: []string{"52:54:00:12:34:57"}, Serial: "BOARD-2"}, Seed: r.server.Seed},
	}
	if err := bundle.Write(dir, theBuild(t).dir, nodes); err != nil {
		t.Fatal(err)
	}
	r.report.NICs = []machine.NIC{{Name: "eth0", MAC: "52:54:00:12:34:56"}}
	return dir
}

func (r *rig) fromStick(dir string) install.Result {
	r.t.Helper()
	source, err := bundle.Open(dir, time.Now)
	if err != nil {
		r.t.Fatal(err)
	}
	defer source.Close()
	return install.Run(r.t.Context(), r.env(), source, r.disks, r.report)
}

func TestStickInstallsOnce(t *testing.T) {
	r := newRig(t)
	dir := stick(t, r)
	if result := r.fromStick(dir); result.Err != nil || !result.Acknowledged {
		t.Fatalf("%v\n%s", result.Err, r.screen.text())
	}
	r.installed()
	receipt, err := os.ReadFile(filepath.Join(dir, "nodes/n1/receipt.json"))
	if err != nil || !strings.Contains(string(receipt), `"readBack": true`) {
		t.Errorf("receipt on the stick: %v\n%s", err, receipt)
	}
	r.disks.opened = nil
	result := r.fromStick(dir)
	if !errors.Is(result.Err, install.ErrTicket) || !strings.Contains(strings.Join(result.Summary(), " "), "was installed with it on") {
		t.Errorf("second time: %v", result.Err)
	}
	r.untouched(result)
	// The same stick in the other machine.
	r.report.NICs[0].MAC, r.report.Identity.Serial = "52:54:00:00:00:01", "board-2"
	if result := r.fromStick(dir); result.Err != nil || result.Receipt.Node != "n2" {
		t.Errorf("other machine: %v", result.Err)
	}
}

func TestStickIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(r *rig, dir string)
		says   string
	}{
		"machine of nobody":    {func(r *rig, _ string) { r.report.NICs[0].MAC = "52:54:00:00:00:99" }, "52:54:00:00:00:99"},
		"machine of two nodes": {func(r *rig, _ string) { r.report.Identity.Serial = "BOARD-2" }, "n1 and n2"},
		"image cut off":        {func(_ *rig, dir string) { cutFile(t, filepath.Join(dir, "build/disk.raw.zst")) }, "the link was cut"},
		"index missing":        {func(_ *rig, dir string) { os.Remove(filepath.Join(dir, "build/index.json")) }, "index.json"},
		"seed missing":         {func(_ *rig, dir string) { os.RemoveAll(filepath.Join(dir, "nodes/n1/seed")) }, "seed"},
		"ticket damaged":       {func(_ *rig, dir string) { os.WriteFile(filepath.Join(dir, "nodes/n1/ticket.json"), []byte("{"), 0o600) }, "ticket.json"},
		"a link out of the bundle": {func(_ *rig, dir string) {
			os.Remove(filepath.Join(dir, "build/index.json"))
			os.Symlink("/etc/passwd", filepath.Join(dir, "build/index.json"))
		}, "escapes"},
	} {
		r := newRig(t)
		dir := stick(t, r)
		tt.change(r, dir)
		result := r.fromStick(dir)
		if result.Err == nil || !strings.Contains(result.Err.Error()+r.screen.text(), tt.says) {
			t.Errorf("%s: %v", name, result.Err)
		}
		r.untouched(result)
	}
}

func cutFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
}

func TestBundleIsRefused(t *testing.T) {
	r := newRig(t)
	dir := theBuild(t).dir
	good := bundle.Node{Ticket: r.server.Ticket, Machine: bundle.Machine{MACs: []string{"52:54:00:12:34:56"}}, Seed: r.server.Seed}
	noMachine, noTicket := good, good
	noMachine.Machine = bundle.Machine{Serial: "To Be Filled By O.E.M."}
	noTicket.Ticket.ID = "x"
	for name, nodes := range map[string][]bundle.Node{"no node": nil, "no machine": {noMachine}, "no ticket": {noTicket}} {
		if err := bundle.Write(t.TempDir(), dir, nodes); err == nil {
			t.Errorf("%s: written", name)
		}
	}
	if n, err := bundle.Size(dir); err != nil || n < theIndex(t).Disk.PackedSize() {
		t.Errorf("size %d, %v", n, err)
	}
}
