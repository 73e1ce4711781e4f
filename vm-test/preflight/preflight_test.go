package preflight

import (
	"bufio"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/disks"
	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/preflight"
	"github.com/slipway/slipway/internal/bootstrap/ssh/hostkey"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/sequence"
	"github.com/slipway/slipway/vm-test/qemu"
)

func TestNode(t *testing.T) {
	l := open(t)
	system := l.system(t, "first")
	vm := l.start(t, "first", system)
	l.trust(t, vm)
	n := l.reach(t, vm)
	n.ready(t)
	seen := n.ask(t)
	l.facts(t, seen)
	l.judged(t, seen)
	n.socket(t)

	made := l.disks(t, n, "create", "file system on vdb")
	n.run(t, "echo keep >/var/lib/longhorn/data/longhorn-disk.cfg; sync")
	t.Logf("data disk %s has the file system %s", made.Serial, made.UUID)

	n.run(t, "systemctl reboot")
	back := l.again(t, n)
	if now := back.ask(t).Facts; len(now.Data) != 1 || now.Data[0].UUID != made.UUID || !now.Data[0].Mounted || now.BootID == seen.Facts.BootID || now.MachineID != seen.Facts.MachineID {
		t.Errorf("after a restart: %+v, boot %s", now.Data, now.BootID)
	}
	back.kept(t)
	if failed := back.run(t, "systemctl --failed --no-legend --plain"); failed != "" {
		t.Errorf("failed units: %s", failed)
	}
	if got := back.run(t, "systemctl show --property=RequiresMountsFor --value k3s.service"); !strings.Contains(got, "/var/lib/longhorn/data") {
		t.Errorf("k3s does not wait for the data disk: %s", got)
	}
	back.vm.Close()

	// The system disk dies; the data disk goes on in the new system.
	vm = l.start(t, "second", l.system(t, "second"))
	l.await(t, vm)
	if _, err := l.reach(t, vm).Run(within(t, stepLimit), "true", nil); exit.Of(err) != exit.Refused {
		t.Errorf("a node with another host key was let pass: %v", err)
	}
	l.trust(t, vm)
	n = l.reach(t, vm)
	n.ready(t)
	if again := l.disks(t, n, "create", "mount of vdb"); again.UUID != made.UUID || again.Made {
		t.Errorf("the new system has %+v, it was %+v", again, made)
	}
	n.kept(t)
}

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// await waits until sshd answers.
func (l *lab) await(t *testing.T, vm *qemu.VM) []string {
	t.Helper()
	for start := time.Now(); ; time.Sleep(2 * time.Second) {
		keys, err := hostkey.Scan(t.Context(), vm.SSHAddress())
		if err == nil {
			t.Logf("sshd answers after %.0f s", time.Since(start).Seconds())
			return keys
		}
		if time.Since(start) > bootLimit {
			t.Fatal(err)
		}
	}
}

// trust does what an operator does: it reads the fingerprint on the console, and
// trusts the key that has it.
func (l *lab) trust(t *testing.T, vm *qemu.VM) {
	t.Helper()
	keys := l.await(t, vm)
	for _, key := range keys {
		print, err := hostkey.Fingerprint(key)
		if err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); !strings.Contains(vm.Serial[0].Text(), "SSH host key "+print); time.Sleep(time.Second) {
			if time.Since(start) > bootLimit {
				t.Fatalf("the console does not show %s", print)
			}
		}
		t.Logf("the console shows %s", print)
	}
	if err := hostkey.Trust(l.known, "n1", "10.0.2.15:22", keys, true); err != nil {
		t.Fatal(err)
	}
}

// again waits until the node is back from a restart.
func (l *lab) again(t *testing.T, n *node) *node {
	t.Helper()
	before := n.survey.Ask(t.Context(), "n1")[0].Facts.BootID
	for start := time.Now(); ; time.Sleep(2 * time.Second) {
		n.survey.Forget("n1")
		if s := n.survey.Ask(t.Context(), "n1")[0]; s.Err == nil && s.Facts.BootID != before {
			t.Logf("back after %.0f s", time.Since(start).Seconds())
			n.ready(t)
			return n
		}
		if time.Since(start) > bootLimit {
			t.Fatal("it does not come back")
		}
	}
}

// facts compares what the node tells with what the profile promises.
func (l *lab) facts(t *testing.T, seen facts.Seen) {
	t.Helper()
	f, want := seen.Facts, l.cluster.Nodes[0]
	if f.Node != want.Name || f.Cluster != l.cluster.Name || f.Environment != l.cluster.Environment || len(f.MachineID) != 32 || !strings.HasPrefix(f.Initiator, "iqn.") || len(f.HostKeys) != 2 {
		t.Errorf("identity: %+v", f)
	}
	if on, err := f.On(want.Address()); err != nil || on.MAC != string(want.Interfaces[0].MAC) || !on.Up {
		t.Errorf("network: %+v, %v", f.Interfaces, err)
	}
	if len(f.Missing) > 0 || f.Image.Slot != "a" || len(f.Image.RootHash) != 64 || f.Clock.LocalRTC || f.K3s.Knows() || f.K3s.Config {
		t.Errorf("%+v", f)
	}
	if len(f.Disks) != 2 || !f.Disks[0].Boot || f.Disks[1].Boot || len(f.Disks[1].Content) != 0 {
		t.Errorf("disks: %+v", f.Disks)
	}
	defaults := 0
	for _, r := range f.Routes {
		if r.Destination.Bits() == 0 && r.Gateway == l.cluster.Network.Gateway {
			defaults++
		}
	}
	if defaults != 1 {
		t.Errorf("routes: %+v", f.Routes)
	}
	t.Logf("clock between %s and %s of ours, synchronised: %v", seen.Behind, seen.Ahead, f.Clock.Synchronised)
}

// judged runs preflight. The network is closed, so no time server answers, and the
// image need not have k3s; nothing else may speak against the node.
func (l *lab) judged(t *testing.T, seen facts.Seen) {
	t.Helper()
	err := preflight.Check(preflight.Input{Cluster: l.cluster, Seen: []facts.Seen{seen}})
	t.Logf("preflight: %v", err)
	var all *preflight.Error
	if !errors.As(err, &all) || exit.Of(err) != exit.Refused {
		t.Fatal("a clock that nobody keeps is no reason")
	}
	for _, f := range all.Findings {
		if !strings.Contains(f.What, "clock is not synchronised") && !strings.Contains(f.What, "k3s") {
			t.Errorf("unexpected: %s", f)
		}
	}
}

// socket speaks through the node with a program of which only root may.
func (n *node) socket(t *testing.T) {
	t.Helper()
	conn, err := n.Dial(within(t, stepLimit), "unix", "/run/dbus/system_bus_socket")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(stepLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("\x00AUTH\r\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "REJECTED") {
		t.Errorf("the bus says %q, %v", line, err)
	}
	if _, err := n.Dial(within(t, stepLimit), "unix", "/run/no.sock"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a socket that is not there: %v", err)
	}
}

// disks runs the steps for data disks twice: the first time they do what was
// planned, the second time nothing.
func (l *lab) disks(t *testing.T, n *node, verb, what string) facts.Mount {
	t.Helper()
	n.survey.Forget("n1")
	steps := disks.Steps(l.cluster, func(string) disks.Node { return n }, n.survey)
	changes, err := steps[0].Observe(t.Context())
	if err != nil || len(changes) != 1 || string(changes[0].Verb) != verb || !strings.HasPrefix(changes[0].What, what) {
		t.Fatalf("planned %v, %v", changes, err)
	}
	t.Logf("planned: %s %s (%s)", changes[0].Verb, changes[0].What, changes[0].Why)
	r := sequence.Runner{Now: time.Now, On: func(e sequence.Event) { t.Logf("%s %s %s", e.Kind, e.Step, e.Words) }}
	for try, want := range []int{1, 0} {
		if did, err := r.Run(t.Context(), steps); did != want || err != nil {
			t.Fatalf("run %d did %d, %v", try, did, err)
		}
	}
	f := n.ask(t).Facts
	if len(f.Data) != 1 || !f.Data[0].Mounted {
		t.Fatalf("the node has %+v", f.Data)
	}
	return f.Data[0]
}

// kept looks whether what Longhorn would have written is still there.
func (n *node) kept(t *testing.T) {
	t.Helper()
	if got := n.run(t, "cat /var/lib/longhorn/data/longhorn-disk.cfg"); got != "keep\n" {
		t.Errorf("longhorn-disk.cfg says %q", got)
	}
}
