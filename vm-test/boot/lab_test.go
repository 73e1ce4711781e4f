package boot

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/vm-test/qemu"
)

const (
	diskSize = 8 << 30 // bytes; several times the image
	memory   = 1024    // MiB, the least that a node must be content with

	// Limits of waits. A first boot under TCG takes about a minute, and twice
	// that when two machines share two cores.
	bootLimit = 10 * time.Minute
	stepLimit = 2 * time.Minute
)

// lab is what all tests share: the image, what its profile promises, and how to
// run machines here.
type lab struct {
	profile cluster.Cluster
	node    cluster.Node
	index   artifact.Index
	image   string // the raw disk image
	key     []byte // private SSH key of the profile's user
	accel   qemu.Accel
	dir     string // for the machines' files
}

func open(t *testing.T) *lab {
	t.Helper()
	l := &lab{dir: t.TempDir()}
	p, err := profilefile.Load("../../profiles/lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l.profile, l.node = p.Cluster, p.Cluster.Nodes[0]
	l.key = read(t, "../testdata/lab_ed25519")
	images := os.Getenv("SLIPWAY_IMAGE_DIR")
	if images == "" {
		images = "../../out/lab"
	}
	if images, err = filepath.Abs(images); err != nil {
		t.Fatal(err)
	}
	l.index, err = artifact.Decode(read(t, filepath.Join(images, artifact.IndexName)))
	if err != nil {
		t.Fatalf("%v\nhint: run make image", err)
	}
	l.image = filepath.Join(images, l.file(t, artifact.RoleDiskRaw))
	var why string
	l.accel, why, err = qemu.ChooseAccel(t.Context(), filepath.Join(images, l.file(t, artifact.RoleKernel)), l.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("image %s, plan %s", l.image, l.index.Plan)
	t.Logf("accelerator %s: %s", l.accel, why)
	return l
}

func (l *lab) file(t *testing.T, role artifact.Role) string {
	t.Helper()
	for _, f := range l.index.Files {
		if f.Role == role {
			return f.Name
		}
	}
	t.Fatalf("the build in %s has no file of role %s", l.dir, role)
	return ""
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// machine is one node of the lab: a disk with the image on it, and the virtual
// machine while it is on.
type machine struct {
	*qemu.VM
	lab   *lab
	disk  qemu.Disk
	shell *qemu.Shell
}

// install makes a machine with a fresh copy of the image on a larger disk and
// switches it on, with NVRAM that has never seen it.
func (l *lab) install(t *testing.T, name string) *machine {
	t.Helper()
	disk, err := qemu.Overlay(t.Context(), l.image, "raw", filepath.Join(l.dir, name+".qcow2"), diskSize)
	if err != nil {
		t.Fatal(err)
	}
	disk.Serial = l.node.System.Serial
	m := &machine{lab: l, disk: disk}
	nic := l.node.Interfaces[0]
	m.VM, err = qemu.Start(t.Context(), qemu.Config{
		Name: name, Dir: l.dir, Accel: l.accel, Memory: memory, Disks: []qemu.Disk{disk},
		NICs: []qemu.NIC{{MAC: string(nic.MAC), SSH: nic.Addresses[0].Addr()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.close()
		if t.Failed() {
			t.Logf("the console of %s ends in:\n%s", name, m.Serial[0].Tail())
		}
	})
	return m
}

func (m *machine) close() {
	if m.shell != nil {
		m.shell.Close()
	}
	m.VM.Close()
}

// login connects, anew after a restart, and waits until the node calls itself ready.
func (m *machine) login(t *testing.T) {
	t.Helper()
	start := time.Now()
	if m.shell != nil {
		m.shell.Close()
	}
	var err error
	if m.shell, err = m.SSH(t.Context(), m.lab.profile.Access.Users[0].Name, m.lab.key, bootLimit); err != nil {
		t.Fatal(err)
	}
	t.Logf("logged in after %.0f s", time.Since(start).Seconds())
	if err := m.until(t.Context(), "test -e /run/slipway/ready", bootLimit); err != nil {
		t.Errorf("the node does not become ready: %v\n%s", err, m.try("sudo slipway-node ready; systemctl --failed; cloud-init status --long"))
		t.FailNow()
	}
	t.Logf("ready after %.0f s", time.Since(start).Seconds())
}

// until runs a test command on the node until it succeeds. The loop is on the
// node: one session, however often it looks.
func (m *machine) until(ctx context.Context, command string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit+stepLimit)
	defer cancel()
	_, err := m.shell.Run(ctx, fmt.Sprintf("timeout %d sh -c 'until %s; do sleep 0.5; done'", int(limit.Seconds()), command))
	return err
}

// run runs a command that must succeed and returns its output.
func (m *machine) run(t *testing.T, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	out, err := m.shell.Run(ctx, command)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// try runs a command for its words, whatever becomes of it.
func (m *machine) try(command string) string {
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	out, err := m.shell.Run(ctx, command)
	if err != nil {
		return err.Error()
	}
	return out
}

// address is the node's address in the cluster, with its prefix.
func (l *lab) address() netip.Prefix { return l.node.Interfaces[0].Addresses[0] }
