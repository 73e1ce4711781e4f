package preflight

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/ssh"
	"github.com/slipway/slipway/internal/bootstrap/ssh/hostkey"
	"github.com/slipway/slipway/internal/bootstrap/survey"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/vm-test/qemu"
)

const (
	systemSize = 8 << 30 // bytes
	dataSize   = 2 << 30
	memory     = 1024 // MiB

	// A first boot under TCG takes about a minute, and several times that on a busy
	// machine.
	bootLimit = 15 * time.Minute
	stepLimit = 5 * time.Minute
)

// lab is the image and what its profile promises of the first node.
type lab struct {
	cluster cluster.Cluster // with the first node alone
	index   artifact.Index
	image   string
	accel   qemu.Accel
	dir     string
	data    qemu.Disk // outlives systems
	known   string    // known_hosts
}

func open(t *testing.T) *lab {
	t.Helper()
	p, err := profilefile.Load("../../profiles/lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{cluster: p.Cluster, dir: t.TempDir()}
	l.cluster.Nodes = l.cluster.Nodes[:1]
	l.known = filepath.Join(l.dir, "state", hostkey.FileName)
	images := os.Getenv("SLIPWAY_IMAGE_DIR")
	if images == "" {
		images = "../../out/lab"
	}
	if images, err = filepath.Abs(images); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(images, artifact.IndexName))
	if err != nil {
		t.Fatalf("%v\nhint: run make image", err)
	}
	if l.index, err = artifact.Decode(text); err != nil {
		t.Fatal(err)
	}
	files := map[artifact.Role]string{}
	for _, f := range l.index.Files {
		files[f.Role] = filepath.Join(images, f.Name)
	}
	l.image = files[artifact.RoleDiskRaw]
	if l.accel, _, err = qemu.ChooseAccel(t.Context(), files[artifact.RoleKernel], l.dir); err != nil {
		t.Fatal(err)
	}
	if l.data, err = qemu.Blank(t.Context(), filepath.Join(l.dir, "data.qcow2"), dataSize); err != nil {
		t.Fatal(err)
	}
	l.data.Serial = l.cluster.Nodes[0].Data[0].Selector.Serial
	return l
}

// system is a fresh system disk: the image as an install writes it.
func (l *lab) system(t *testing.T, name string) qemu.Disk {
	t.Helper()
	d, err := qemu.Overlay(t.Context(), l.image, "raw", filepath.Join(l.dir, name+".qcow2"), systemSize)
	if err != nil {
		t.Fatal(err)
	}
	d.Serial = l.cluster.Nodes[0].System.Serial
	return d
}

// start switches the machine on.
func (l *lab) start(t *testing.T, name string, system qemu.Disk) *qemu.VM {
	t.Helper()
	nic := l.cluster.Nodes[0].Interfaces[0]
	vm, err := qemu.Start(t.Context(), qemu.Config{
		Name: name, Dir: l.dir, Accel: l.accel, Memory: memory, Disks: []qemu.Disk{system, l.data},
		NICs: []qemu.NIC{{MAC: string(nic.MAC), SSH: nic.Addresses[0].Addr()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		vm.Close()
		if t.Failed() {
			t.Logf("the console of %s ends in:\n%s", name, vm.Serial[0].Tail())
		}
	})
	return vm
}

// node is a started node, as bootstrap has it.
type node struct {
	*ssh.Host
	vm     *qemu.VM
	survey *survey.Survey
}

// reach makes bootstrap's drivers for a machine, with the keys that are trusted.
func (l *lab) reach(t *testing.T, vm *qemu.VM) *node {
	t.Helper()
	login, err := ssh.Open("", []string{key(t, l.dir)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := hostkey.Read(l.known, "n1")
	if err != nil {
		t.Fatal(err)
	}
	user := l.cluster.Access.Users[0]
	h := ssh.New(ssh.Options{Node: "n1", Address: vm.SSHAddress(), User: user.Name, Authorized: user.Keys, HostKeys: trusted, Login: login})
	t.Cleanup(func() { h.Close() })
	return &node{h, vm, survey.New(map[string]survey.Node{"n1": h}, time.Now)}
}

// key is the lab's private key; a checkout may have made it readable for others.
func key(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile("../testdata/lab_ed25519")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "id")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a command on the node that must succeed.
func (n *node) run(t *testing.T, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	out, err := n.Run(ctx, command, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// ready waits for the node's baseline.
func (n *node) ready(t *testing.T) {
	t.Helper()
	start := time.Now()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
		_, err := n.Run(ctx, "slipway-node ready --wait 2m", nil)
		cancel()
		if err == nil {
			t.Logf("ready %.0f s after it was reached first", time.Since(start).Seconds())
			return
		}
		if time.Since(start) > bootLimit {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
}

// ask is what the node says now.
func (n *node) ask(t *testing.T) facts.Seen {
	t.Helper()
	n.survey.Forget("n1")
	seen := n.survey.Ask(t.Context(), "n1")[0]
	if seen.Err != nil {
		t.Fatal(seen.Err)
	}
	return seen
}
