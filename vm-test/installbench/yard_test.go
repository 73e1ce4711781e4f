package installbench

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/pxed/client"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/vm-test/netns"
)

// yard is a pxed that serves a real build, and machines around a bridge.
type yard struct {
	server    *netns.Host
	url       string
	operator  *client.Client
	image     string // its compressed image, by its name in the build
	imageSize int64  // bytes that go over the link for one install
	rawSize   int64  // bytes that the image covers
	machines  []*box
}

// state is what the disks have room for behind the image, bytes.
const state = 1 << 30

var own = netip.MustParsePrefix("10.0.2.2/24") // the lab's gateway

func newYard(t *testing.T, machines int) *yard {
	t.Helper()
	y := &yard{url: "http://" + own.Addr().String() + ":8080", server: netns.NewHost(t)}
	build := place(t, "SLIPWAY_IMAGE_DIR", "../../out/lab")
	y.readIndex(t, filepath.Join(build, artifact.IndexName))
	bridge := netns.Bridge(t, "")
	netns.Plug(t, bridge, y.server, "52:54:00:12:34:01", own.String())
	dir := t.TempDir()
	y.serve(t, build, profileOf(t, dir, machines), dir)
	for i := range machines {
		y.machines = append(y.machines, newBox(t, bridge, i, y.rawSize+state))
	}
	return y
}

func (y *yard) readIndex(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !*full {
		t.Skip("make build image first: ", err)
	}
	index, err := artifact.Decode(text)
	if err != nil {
		t.Fatalf("%v\nhint: run make build image", err)
	}
	file, ok := index.One(artifact.RoleDiskZstd)
	if !ok {
		t.Fatal("the build has no compressed image")
	}
	y.image, y.imageSize = file.Name, file.Size
	y.rawSize = index.Disk.Size
}

// place is a directory that a variable may name.
func place(t *testing.T, variable, usual string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		dir = usual
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// profileOf is the lab's profile with as many nodes as there are machines.
func profileOf(t *testing.T, dir string, machines int) string {
	t.Helper()
	if err := os.CopyFS(filepath.Join(dir, "profiles"), os.DirFS("../../profiles")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "profiles", "lab.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(text), "\nnodes:\n")
	if !found {
		t.Fatal("the lab's profile has no nodes")
	}
	var b strings.Builder
	b.WriteString(head + "\nnodes:\n")
	for i := range max(machines, 3) {
		role := "server"
		if i > 2 {
			role = "agent"
		}
		fmt.Fprintf(&b, "  - name: %s\n    role: %s\n    interfaces:\n      - mac: \"%s\"\n        addresses: [%s]\n    systemDisk:\n      serial: %s\n", nodeOf(i), role, macOf(i), addressOf(i), serialOf(i))
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func nodeOf(i int) string    { return fmt.Sprintf("n%d", i+1) }
func macOf(i int) string     { return fmt.Sprintf("52:54:00:12:34:%02x", 0x56+i) }
func addressOf(i int) string { return fmt.Sprintf("10.0.2.%d/24", 15+i) }
func serialOf(i int) string  { return "slipway-" + nodeOf(i) + "-system" }

// serve starts pxed as it is shipped.
func (y *yard) serve(t *testing.T, build, profile, dir string) {
	t.Helper()
	program := filepath.Join(place(t, "SLIPWAY_BIN_DIR", "../../bin"), "pxed")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	socket := filepath.Join("/tmp", fmt.Sprintf("installbench-%d.sock", os.Getpid())) // one of a unix socket has at most 107 bytes
	cmd := y.server.Command(context.Background(), program, "serve", "-p", profile, "--image", build, "-i", "eth0", "--state", filepath.Join(dir, "state"), "--socket", socket)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v\nhint: run make build", err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("pxed said: %s", text[max(0, len(text)-4000):])
		}
	})
	y.operator = client.Socket(socket)
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, err := y.operator.Machines(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("pxed does not answer: %v", err)
		}
	}
}

// arm lets a machine be imaged, also when it was before.
func (y *yard) arm(t *testing.T, m *box) {
	t.Helper()
	if _, err := y.operator.Arm(t.Context(), m.node, desk.Order{}); err != nil {
		t.Fatal(err)
	}
}

// box is a machine: a host on the network, and a disk.
type box struct {
	node, mac, serial string
	host              *netns.Host
	cable             string // the bridge's end of it
	file, disk        string
	size              int64
}

func newBox(t *testing.T, bridge string, i int, size int64) *box {
	t.Helper()
	m := &box{node: nodeOf(i), mac: macOf(i), serial: serialOf(i), host: netns.NewHost(t), size: size}
	m.cable = netns.Plug(t, bridge, m.host, m.mac, addressOf(i))
	dir, err := os.MkdirTemp(*where, "installbench-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m.file = filepath.Join(dir, "disk")
	m.blank(t)
	text, err := exec.Command("losetup", "--find", "--show", m.file).CombinedOutput()
	if err != nil {
		t.Fatalf("making a disk: %v\n%s", err, text)
	}
	m.disk = strings.TrimSpace(string(text))
	t.Cleanup(func() { exec.Command("losetup", "--detach", m.disk).Run() })
	return m
}

// blank makes the disk take no memory.
func (m *box) blank(t *testing.T) {
	t.Helper()
	if m.disk != "" {
		if text, err := exec.Command("blkdiscard", "--force", m.disk).CombinedOutput(); err != nil {
			t.Fatalf("blkdiscard: %v\n%s", err, text)
		}
		return
	}
	if err := os.WriteFile(m.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(m.file, m.size); err != nil {
		t.Fatal(err)
	}
}

// fill writes to every byte that the image will cover, so that nothing is saved by
// what is not there yet.
func (m *box) fill(t *testing.T, size int64) {
	t.Helper()
	f, err := os.OpenFile(m.disk, os.O_WRONLY|syscall.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := bytes.Repeat([]byte("old data"), 1<<19)
	for at := int64(0); at < size; at += int64(len(old)) {
		if _, err := f.WriteAt(old[:min(int64(len(old)), size-at)], at); err != nil {
			t.Fatal(err)
		}
	}
}
