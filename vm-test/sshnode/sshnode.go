// Package sshnode gives tests a node as far as SSH is concerned: a real sshd with a
// real sudo, with users, files and programs of its own. It lives in name spaces for
// mounts and processes that end with the test; the host's files are seen through it
// and never changed.
package sshnode

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/slipway/slipway/vm-test/netns"
)

// The users of a node. All log in with the key in Node.KeyFile.
const (
	Operator = "slip" // may use sudo
	Guest    = "weak" // may not
)

// Options say how a node differs from the simplest.
type Options struct {
	Host   *netns.Host // the network it is in; nil is the test's own
	Name   string      // host name; "" is the host's
	Listen string      // host:port; "" is a free port of the loopback
	Lines  []string    // more lines of sshd_config, before the usual ones
}

// Node is a running node.
type Node struct {
	Address string // host:port
	HostKey string // authorized_keys form
	KeyFile string // private key of the users
	Public  string // its public half
	root    string // the node's file system, as seen from here
	cmd     *exec.Cmd
}

// Path is where a file of the node lies for the test.
func (n *Node) Path(path string) string { return filepath.Join(n.root, path) }

// Write writes a file of the node.
func (n *Node) Write(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(n.Path(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.Path(path), []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(n.Path(path), mode); err != nil {
		t.Fatal(err)
	}
}

// Program puts a shell script into the node's PATH, before the host's programs.
func (n *Node) Program(t testing.TB, name, script string) {
	t.Helper()
	n.Write(t, "/usr/local/bin/"+name, "#!/bin/sh\n"+script+"\n", 0o755)
}

// Stop ends the node at once, as a power cut does.
func (n *Node) Stop() {
	n.cmd.Process.Kill() // its children go with it
	n.cmd.Wait()
}

// Drop ends all connections to the node.
func (n *Node) Drop() {
	for _, pid := range below(n.cmd.Process.Pid)[2:] { // after unshare and the sshd that listens
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Pause stops all of the node without closing a connection, until the function
// that it returns is called.
func (n *Node) Pause(t testing.TB) (goOn func()) {
	t.Helper()
	pids := below(n.cmd.Process.Pid)
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// startLimit is how long sshd may take until it answers.
const startLimit = 30 * time.Second

// Start starts a node that lasts as long as the test. It needs root.
func Start(t testing.TB, o Options) *Node {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("users and sudo of a node need root")
	}
	dir := t.TempDir()
	n := &Node{Address: o.Listen, KeyFile: filepath.Join(dir, "id_ed25519")}
	if n.Address == "" {
		n.Address = freePort(t)
	}
	n.Public = newKey(t, n.KeyFile)
	n.HostKey = newKey(t, filepath.Join(dir, "host"))
	config := filepath.Join(dir, "sshd_config")
	write(t, config, strings.Join(append(o.Lines, settings(n.Address, dir)...), "\n")+"\n")
	args := []string{"--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc", "--propagation", "private", "sh", "-c", set, "sh", config, n.Public, o.Name}
	n.cmd = exec.Command("unshare", args...)
	if o.Host != nil {
		n.cmd = o.Host.Command(context.Background(), "unshare", args...)
	}
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log := new(tailLog)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.Stop()
		if t.Failed() {
			t.Logf("sshd on %s said:\n%s", n.Address, log)
		}
	})
	n.await(t, o.Host, log)
	return n
}

// set makes the node's own view of the host's files, its users, and becomes sshd.
const set = `set -e
name=$3
[ -z "$name" ] || hostname "$name"
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/layers
for d in /etc /var/lib /var/log /usr/local /home; do
	l=/run/layers/$(echo "$d" | tr / _)
	mkdir "$l.up" "$l.work"
	mount -t overlay overlay -o "lowerdir=$d,upperdir=$l.up,workdir=$l.work" "$d"
done
chmod 0755 /usr/local /usr/local/bin
[ -z "$name" ] || echo "127.0.1.1 $name" >>/etc/hosts # sudo looks it up
for u in slip:2001 weak:2002; do
	id=${u#*:} u=${u%:*}
	echo "$u:x:$id:$id::/home/$u:/bin/sh" >>/etc/passwd
	echo "$u:*:19000:0:99999:7:::" >>/etc/shadow
	echo "$u:x:$id:" >>/etc/group
	mkdir -p "/home/$u"
	chown "$id:$id" "/home/$u"
done
printf '%s\n' 'Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"' 'root ALL=(ALL:ALL) ALL' 'slip ALL=(ALL:ALL) NOPASSWD: ALL' >/etc/sudoers
chmod 0440 /etc/sudoers
echo "$2" >/run/authorized_keys
touch /run/up
exec /usr/sbin/sshd -D -e -f "$1"`

func settings(address, dir string) []string {
	host, port, _ := net.SplitHostPort(address)
	return []string{
		"ListenAddress " + host, "Port " + port,
		"HostKey " + filepath.Join(dir, "host"),
		"AuthorizedKeysFile /run/authorized_keys", "StrictModes no",
		"PidFile none", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"PermitRootLogin prohibit-password", "UseDNS no", "MaxStartups 100",
	}
}

// await waits until sshd answers and the node's files can be seen.
func (n *Node) await(t testing.TB, host *netns.Host, log *tailLog) {
	t.Helper()
	for until := time.Now().Add(startLimit); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if n.cmd.ProcessState != nil {
			break
		}
		all := below(n.cmd.Process.Pid)
		if len(all) < 2 {
			continue
		}
		n.root = fmt.Sprintf("/proc/%d/root", all[1])
		if _, err := os.Stat(n.Path("/run/up")); err != nil {
			continue
		}
		conn, err := dial(host, n.Address)
		if err == nil {
			conn.Close()
			return
		}
	}
	t.Fatalf("sshd does not answer on %s\n%s", n.Address, log)
}

func dial(host *netns.Host, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if host == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	return host.Dial(ctx, "tcp", address)
}

// below lists a process and all that come from it, parents first.
func below(pid int) []int {
	out := []int{pid}
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, word := range strings.Fields(string(data)) {
		var child int
		if _, err := fmt.Sscan(word, &child); err == nil {
			out = append(out, below(child)...)
		}
	}
	return out
}

// newKey writes a new private key and returns its public half.
func newKey(t testing.TB, path string) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// freePort finds a port of the loopback that nobody listens on.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// tailLog keeps what sshd says, for a test that fails.
type tailLog struct {
	mu   sync.Mutex
	text []byte
}

func (l *tailLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *tailLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text[max(0, len(l.text)-16<<10):])
}
