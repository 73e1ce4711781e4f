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
	spec := bundle.Spec{Build: theBuild(t).dir, Others: map[string]bundle.Machine{"n3": {Serial: "BOARD-3"}}, Nodes: []bundle.Node{
		{Ticket: r.server.Ticket, Machine: bundle.Machine{MACs: []string{"52:54:00:12:34:56"}}, Seed: r.server.Seed},
		{Ticket: other, Machine: bundle.Machine{MACs: []string{"52:54:00:12:34:57"}, Serial: "BOARD-2"}, Seed: r.server.Seed},
	}}
	if err := bundle.Write(dir, spec); err != nil {
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
		"machine of nobody": {func(r *rig, _ string) { r.report.NICs[0].MAC = "52:54:00:00:00:99" }, "52:54:00:00:00:99"},
		"machine of a node that is not on it": {func(r *rig, _ string) { r.report.NICs, r.report.Identity.Serial = nil, "board-3" },
			"this machine is node n3, and the stick installs only n1, n2"},
		"machine of two nodes, one not on it": {func(r *rig, _ string) { r.report.Identity.Serial = "BOARD-3" }, "n1 and n3"},
		"machine of two nodes":                {func(r *rig, _ string) { r.report.Identity.Serial = "BOARD-2" }, "n1 and n2"},
		"image cut off":                       {func(_ *rig, dir string) { cutFile(t, filepath.Join(dir, "build/disk.raw.zst")) }, "the link was cut"},
		"index missing":                       {func(_ *rig, dir string) { os.Remove(filepath.Join(dir, "build/index.json")) }, "index.json"},
		"seed missing":                        {func(_ *rig, dir string) { os.RemoveAll(filepath.Join(dir, "nodes/n1/seed")) }, "seed"},
		"ticket damaged":                      {func(_ *rig, dir string) { os.WriteFile(filepath.Join(dir, "nodes/n1/ticket.json"), []byte("{"), 0o600) }, "ticket.json"},
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
	noMachine, noTicket, either := good, good, good
	noMachine.Machine = bundle.Machine{Serial: "To Be Filled By O.E.M."}
	noTicket.Ticket.ID = "x"
	either.Machine.Any = true
	for name, nodes := range map[string][]bundle.Node{"no node": nil, "no machine": {noMachine}, "no ticket": {noTicket}, "any of two": {good, either}} {
		if err := bundle.Write(t.TempDir(), bundle.Spec{Build: dir, Nodes: nodes}); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// A stick that was written for one node takes a machine that no node names, but
// never one that is another node.
func TestStickForOneNode(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	spec := bundle.Spec{
		Build: theBuild(t).dir, Others: map[string]bundle.Machine{"n2": {MACs: []string{"52:54:00:12:34:57"}}},
		Nodes: []bundle.Node{{Ticket: r.server.Ticket, Machine: bundle.Machine{MACs: []string{"52:54:00:12:34:56"}, Any: true}, Seed: r.server.Seed}},
	}
	if err := bundle.Write(dir, spec); err != nil {
		t.Fatal(err)
	}
	r.report.NICs = []machine.NIC{{Name: "eth0", MAC: "52:54:00:12:34:57"}}
	result := r.fromStick(dir)
	if !errors.Is(result.Err, install.ErrAnswer) || !strings.Contains(result.Err.Error(), "this machine is node n2, and the stick installs only n1") {
		t.Errorf("another node: %v", result.Err)
	}
	r.untouched(result)
	r.report.NICs[0].MAC = "52:54:00:99:99:99"
	if result := r.fromStick(dir); result.Err != nil || result.Receipt.Node != "n1" || !strings.Contains(r.screen.text(), "52:54:00:99:99:99, which no node of the profile names") {
		t.Errorf("a new machine: %v\n%s", result.Err, r.screen.text())
	}
	r.installed()
}
