// Package netns gives tests networks of their own: network namespaces joined by
// virtual cables and bridges, with no way out. Every namespace lives in a process
// that dies with the test, so nothing is left behind, not even after a kill.
//
// A test package calls Main from its TestMain; all of its tests then run inside one
// fresh namespace, in which they may open any port. Further hosts are made by Host.
package netns

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inside marks the process that runs in the namespace.
const inside = "SLIPWAY_TEST_NETNS"

// Main runs the tests of a package in a network namespace of their own. Without
// root a user namespace gives the rights for it, where the host allows that.
func Main(m *testing.M) int {
	if os.Getenv(inside) != "" {
		if err := ip("link", "set", "lo", "up"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = inherited()
	cmd.SysProcAttr = isolated()
	err = cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "making a network namespace:", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// inherited are the files that go test's fuzzing passes to its workers.
func inherited() []*os.File {
	var out []*os.File
	for fd := uintptr(3); fd <= 5; fd++ {
		f := os.NewFile(fd, "inherited")
		if _, err := f.Stat(); err != nil {
			return out
		}
		out = append(out, f)
	}
	return out
}

func isolated() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return a
}

// Host is a network namespace: a machine as far as the network is concerned.
type Host struct{ pid int }

// NewHost makes a namespace that lasts as long as the test.
func NewHost(t testing.TB) *Host {
	t.Helper()
	holder := exec.Command("sleep", "3600")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Fatalf("making a network namespace: %v", err)
	}
	t.Cleanup(func() {
		holder.Process.Kill() // it is ours, and nothing waits for it
		holder.Wait()
	})
	h := &Host{pid: holder.Process.Pid}
	h.Run(t, "ip", "link", "set", "lo", "up")
	return h
}

// Command prepares a program to run on the host. It dies with the test process.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=/proc/" + strconv.Itoa(h.pid) + "/ns/net", "--", name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// runTime bounds a program that should be done at once.
const runTime = 30 * time.Second

// Run runs a program on the host to its end and returns what it printed.
func (h *Host) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	out, err := h.Command(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// ListenUDP opens a port on the host. The connection can be used from anywhere.
func (h *Host) ListenUDP(t testing.TB, address string) *net.UDPConn {
	t.Helper()
	at, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	var conn *net.UDPConn
	err = h.visit(func() error {
		conn, err = net.ListenUDP("udp4", at)
		return err
	})
	if err != nil {
		t.Fatalf("opening %s on another host: %v", address, err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Listen opens a port of the host for connections. The listener can be used from
// anywhere.
func (h *Host) Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	var l net.Listener
	err := h.visit(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		t.Fatalf("opening %s on another host: %v", address, err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Dial opens a connection from the host. It can be used from anywhere.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := h.visit(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// visit calls f on a thread that is in the host's namespace for that long. The
// thread must come back and live on: programs that it has started die with it.
func (h *Host) visit(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	away, err := os.Open("/proc/" + strconv.Itoa(h.pid) + "/ns/net")
	if err != nil {
		return err
	}
	defer away.Close()
	if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering a network namespace: %w", err)
	}
	defer func() {
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
			panic(err) // nothing after this would be where it thinks it is
		}
	}()
	return f()
}

// Bridge makes a switch in the test's own namespace, with an address
// ("192.0.2.1/24") unless that is empty. Its name is returned.
func Bridge(t testing.TB, address string) string {
	t.Helper()
	name := unique("br")
	must(t, "link", "add", name, "type", "bridge", "forward_delay", "0", "stp_state", "0")
	t.Cleanup(func() { ip("link", "del", name) })
	must(t, "link", "set", name, "up")
	if address != "" {
		must(t, "addr", "add", address, "dev", name)
	}
	return name
}

// Plug connects a host to a bridge by a cable; the host's end is named eth0, has
// the given MAC, and the address unless that is empty. The name of the other end is
// returned.
func Plug(t testing.TB, bridge string, h *Host, mac, address string) string {
	t.Helper()
	cable := unique("v")
	must(t, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "address", mac, "netns", strconv.Itoa(h.pid))
	must(t, "link", "set", cable, "master", bridge, "up")
	if address != "" {
		h.Run(t, "ip", "addr", "add", address, "dev", "eth0")
	}
	h.Run(t, "ip", "link", "set", "eth0", "up")
	return cable
}

// Limit makes a cable carry at most so many bits a second from the bridge to the
// host that is plugged in by it; 0 ends a limit.
func Limit(t testing.TB, cable string, bits int) {
	t.Helper()
	if out, err := exec.Command("tc", limit(cable, bits)...).CombinedOutput(); err != nil {
		t.Fatalf("limiting a cable: %v\n%s", err, out)
	}
}

// Limit makes the host's card send at most so many bits a second; 0 ends a limit.
func (h *Host) Limit(t testing.TB, bits int) {
	t.Helper()
	h.Run(t, "tc", limit("eth0", bits)...)
}

func limit(device string, bits int) []string {
	if bits == 0 {
		return []string{"qdisc", "replace", "dev", device, "root", "pfifo", "limit", "1000"} // the usual queue
	}
	return []string{"qdisc", "replace", "dev", device, "root", "tbf", "rate", strconv.Itoa(bits) + "bit", "burst", "256kb", "latency", "50ms"}
}

// Tap makes a network card for a virtual machine, plugged into the bridge.
func Tap(t testing.TB, bridge string) string {
	t.Helper()
	name := unique("t")
	must(t, "tuntap", "add", name, "mode", "tap")
	t.Cleanup(func() { ip("link", "del", name) })
	must(t, "link", "set", name, "master", bridge, "up")
	return name
}

func must(t testing.TB, args ...string) {
	t.Helper()
	if err := ip(args...); err != nil {
		t.Fatal(err)
	}
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func unique(prefix string) string { return prefix + strings.ToLower(rand.Text()[:8]) }
