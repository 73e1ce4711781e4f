package ssh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/ssh/hostkey"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/vm-test/sshnode"
)

// limit bounds a test against a node.
const limit = time.Minute

func login(t *testing.T, files ...string) *Login {
	t.Helper()
	l, err := Open("", files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func host(t *testing.T, n *sshnode.Node, change ...func(*Options)) *Host {
	t.Helper()
	o := Options{Node: "n1", Address: n.Address, User: sshnode.Operator, HostKeys: []string{n.HostKey}, Login: login(t, n.KeyFile)}
	for _, c := range change {
		c(&o)
	}
	h := New(o)
	t.Cleanup(func() { h.Close() })
	return h
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func TestRun(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n)
	out, err := h.Run(within(t), "id -u; cat; echo 'it''s' \"$0\"", []byte("from stdin\n"))
	if err != nil || string(out) != "0\nfrom stdin\nits /bin/sh\n" {
		t.Errorf("%q, %v", out, err)
	}
	_, err = h.Run(within(t), "echo out; echo why >&2; exit 7", nil)
	var ended *ExitError
	if !errors.As(err, &ended) || ended.Code != 7 || err.Error() != "n1: echo out; echo why >&2; exit 7: exit code 7: why" {
		t.Errorf("a failing command: %v", err)
	}
	_, err = h.Run(within(t), "printf 'looking\\nerror: it is full\\nhint: empty it\\n' >&2; exit 3", nil)
	if !errors.As(err, &ended) || ended.ExitCode() != 3 || ended.Said != "it is full" || diag.HintOf(err) != "empty it" {
		t.Errorf("a program of ours: %v, hint %q", err, diag.HintOf(err))
	}
	big, err := h.Run(within(t), "head -c 3000000 /dev/zero", nil)
	if err != nil || len(big) != 3000000 {
		t.Errorf("%d bytes of output, %v", len(big), err)
	}
	if _, err := h.Run(within(t), "true", bytes.Repeat([]byte("x"), 1<<20)); err != nil {
		t.Errorf("a command that does not read its input: %v", err)
	}
	conn := h.conn
	if _, err := h.Run(within(t), "true", nil); err != nil || h.conn != conn {
		t.Errorf("the connection was not kept: %v", err)
	}
}

func TestRootNeedsNoSudo(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n, func(o *Options) { o.User = "root" })
	n.Program(t, "sudo", "echo no sudo here >&2; exit 1")
	if out, err := h.Run(within(t), "id -u", nil); err != nil || string(out) != "0\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestSudoRefused(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n, func(o *Options) { o.User = sshnode.Guest })
	_, err := h.Run(within(t), "id -u", nil)
	if err == nil || !strings.Contains(err.Error(), "n1: weak may not become root: sudo: ") || !strings.Contains(diag.HintOf(err), "sudo: true for weak") {
		t.Errorf("%v, hint %q", err, diag.HintOf(err))
	}
	_, err = host(t, n).Run(within(t), "echo sudo: unable to resolve host >&2; exit 1", nil)
	if err == nil || strings.Contains(err.Error(), "may not become root") {
		t.Errorf("a command that fails by itself: %v", err)
	}
}

// Who shows another key is told nothing, and neither is who cannot be known.
func TestHostKey(t *testing.T) {
	n, other := sshnode.Start(t, sshnode.Options{}), sshnode.Start(t, sshnode.Options{})
	for _, c := range []struct {
		name, want, hint string
		keys             []string
	}{
		{"unknown", "its host key is not known", "bootstrap trust n1", nil},
		{"other", "shows another host key, " + print(t, n.HostKey) + "; known is " + print(t, other.HostKey), "bootstrap trust n1 --replace", []string{other.HostKey}},
	} {
		h := host(t, n, func(o *Options) { o.HostKeys = c.keys })
		_, err := h.Run(within(t), "touch /run/was-here", nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(diag.HintOf(err), c.hint) || exit.Of(err) != exit.Refused {
			t.Errorf("%s: %v, hint %q, exit code %d", c.name, err, diag.HintOf(err), exit.Of(err))
		}
	}
	pinned := host(t, n, func(o *Options) { o.HostKeys, o.Pinned = []string{other.HostKey}, true })
	if _, err := pinned.Run(within(t), "touch /run/was-here", nil); !strings.Contains(diag.HintOf(err), "hostKeys of the profile") {
		t.Errorf("pinned: %v, hint %q", err, diag.HintOf(err))
	}
	if _, err := os.Stat(n.Path("/run/was-here")); err == nil {
		t.Error("a command ran on a node that is not known")
	}
	if _, err := host(t, n, func(o *Options) { o.HostKeys = []string{other.HostKey, n.HostKey} }).Run(within(t), "true", nil); err != nil {
		t.Errorf("one of two known keys: %v", err)
	}
}

func print(t *testing.T, key string) string {
	t.Helper()
	p, err := hostkey.Fingerprint(key)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNotLetIn(t *testing.T) {
	n, other := sshnode.Start(t, sshnode.Options{}), sshnode.Start(t, sshnode.Options{})
	_, err := host(t, n, func(o *Options) { o.Login = login(t, other.KeyFile) }).Run(within(t), "true", nil)
	if err == nil || !strings.Contains(err.Error(), "is not let in as slip with "+print(t, other.Public)+" of "+other.KeyFile) || !strings.Contains(diag.HintOf(err), "--identity") {
		t.Errorf("%v, hint %q", err, diag.HintOf(err))
	}
	_, err = host(t, n, func(o *Options) { o.Login = nil }).Run(within(t), "true", nil)
	if err == nil || !strings.Contains(err.Error(), "no private key") || !strings.Contains(diag.HintOf(err), "ssh-add") {
		t.Errorf("no key at all: %v", err)
	}
}

func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	n := sshnode.Start(t, sshnode.Options{})
	at := func(o *Options) { o.Address = address }
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := host(t, n, at).Run(ctx, "true", nil); err == nil || !strings.Contains(err.Error(), "did not finish the SSH handshake") {
		t.Errorf("somebody who says nothing: %v", err)
	}
	l.Close()
	if _, err := host(t, n, at).Run(within(t), "true", nil); err == nil || !strings.Contains(err.Error(), "refused") || diag.HintOf(err) == "" {
		t.Errorf("nobody there: %v", err)
	}
}

func TestDeadline(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n)
	if _, err := h.Run(within(t), "true", nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := h.Run(ctx, "sleep 60", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command that does not end: %v", err)
	}
	conn := h.conn
	if out, err := h.Run(within(t), "echo on", nil); err != nil || string(out) != "on\n" || h.conn != conn {
		t.Errorf("after a deadline: %q, %v", out, err)
	}
	later, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	if got := h.asRoot(later, "x"); !strings.Contains(got, "timeout -k 10 36") {
		t.Errorf("the node does not end it: %s", got)
	}
}

func TestReconnect(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n)
	if _, err := h.Run(within(t), "true", nil); err != nil {
		t.Fatal(err)
	}
	n.Drop()
	if _, err := h.Run(within(t), "true", nil); err != nil {
		t.Errorf("after the connection broke: %v", err)
	}
}

// A node that is silent is noticed, and taken up again when it is back.
func TestNoSignOfLife(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n)
	h.aliveEvery, h.alivePatience = 50*time.Millisecond, 2*time.Second
	if _, err := h.Run(within(t), "true", nil); err != nil {
		t.Fatal(err)
	}
	conn := h.conn
	goOn := n.Pause(t)
	select {
	case <-conn.gone:
	case <-time.After(limit):
		t.Error("a node that is silent was not noticed")
	}
	goOn()
	h.aliveEvery, h.alivePatience = aliveEvery, alivePatience
	if _, err := h.Run(within(t), "true", nil); err != nil {
		t.Errorf("after it came back: %v", err)
	}
}

func TestLostWhileRunning(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n)
	if _, err := h.Run(within(t), "true", nil); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			if _, err := os.Stat(n.Path("/run/running")); err == nil {
				n.Drop()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, err := h.Run(within(t), "touch /run/running; sleep 60", nil)
	if err == nil || !strings.Contains(err.Error(), "connection was lost") || !strings.Contains(diag.HintOf(err), "run this again") {
		t.Errorf("%v, hint %q", err, diag.HintOf(err))
	}
}

func TestPutAndGet(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n)
	const name = "/etc/rancher/k3s/it's a file"
	if _, err := h.Get(within(t), name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	for _, content := range [][]byte{[]byte("one\x00two\n"), {}, nil, bytes.Repeat([]byte{0xff, '\n'}, 1<<20)} {
		if err := h.Put(within(t), name, 0o640, content); err != nil {
			t.Fatal(err)
		}
		if got, err := h.Get(within(t), name); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes became %d, %v", len(content), len(got), err)
		}
	}
	info, err := os.Stat(n.Path(name))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(n.Path("/etc/rancher")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the directory: %v, %v", info.Mode(), err)
	}
	entries, _ := os.ReadDir(filepath.Dir(n.Path(name)))
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// What arrives in part is not taken, and the old file stays.
func TestPutCut(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n)
	if err := h.Put(within(t), "/etc/slipway/a", 0o600, []byte("old")); err != nil {
		t.Fatal(err)
	}
	s, err := h.Stream(within(t), strings.NewReplacer("%[1]s", "/etc/slipway", "%[2]s", "/etc/slipway/a", "%[3]d", "9", "%[4]o", "600").Replace(put))
	if err != nil {
		t.Fatal(err)
	}
	s.Write([]byte("new"))
	s.(*stream).in.Close()
	if _, err := io.ReadAll(s); err == nil || !strings.Contains(err.Error(), "did not arrive whole") {
		t.Errorf("%v", err)
	}
	entries, _ := os.ReadDir(n.Path("/etc/slipway"))
	if got, err := h.Get(within(t), "/etc/slipway/a"); string(got) != "old" || err != nil || len(entries) != 1 {
		t.Errorf("%q, %v, %v", got, err, entries)
	}
}

func TestStream(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n)
	s, err := h.Stream(within(t), "id -u; exec cat")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Write([]byte("echo\n"))
	got := make([]byte, 7)
	if _, err := io.ReadFull(s, got); err != nil || string(got) != "0\necho\n" {
		t.Errorf("%q, %v", got, err)
	}
	failing, err := h.Stream(within(t), "echo no >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	defer failing.Close()
	var ended *ExitError
	if _, err := io.ReadAll(failing); !errors.As(err, &ended) || ended.Code != 3 || ended.Said != "no" {
		t.Errorf("%v", err)
	}
}

// echo answers one line to who connects.
func echo(t *testing.T, l net.Listener) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
}

func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	echo(t, l)
	free := sshnode.Start(t, sshnode.Options{})
	closed := sshnode.Start(t, sshnode.Options{Lines: []string{"AllowTcpForwarding no"}})
	// Stands for slipway-node, whose own test is beside it.
	closed.Program(t, "slipway-node", `[ "$1 $2" = "connect --greet" ] || exit 9
echo connected
exec python3 -c 'import socket,sys,threading
h,p=sys.argv[1][4:].rsplit(":",1); s=socket.create_connection((h,int(p)))
threading.Thread(target=lambda:[s.sendall(b) for b in iter(lambda:sys.stdin.buffer.read1(999),b"")],daemon=True).start()
while True:
  b=s.recv(999); sys.stdout.buffer.write(b); sys.stdout.flush()' "$3"`)
	for name, n := range map[string]*sshnode.Node{"forwarded": free, "by slipway-node": closed} {
		conn, err := host(t, n).Dial(within(t), "tcp", l.Addr().String())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		conn.Write([]byte("hello\n"))
		got := make([]byte, 6)
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := conn.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: no deadline: %v", name, err)
		}
		if err := conn.Close(); err != nil || conn.RemoteAddr().String() != l.Addr().String() {
			t.Errorf("%s: %v, %s", name, err, conn.RemoteAddr())
		}
	}
	if _, err := host(t, free).Dial(within(t), "tcp", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "connecting to 127.0.0.1:1") {
		t.Errorf("nobody listens: %v", err)
	}
	free.Program(t, "slipway-node", "echo 'error: no such socket' >&2; exit 1")
	if _, err := host(t, free).Dial(within(t), "unix", "/run/none.sock"); err == nil || !strings.Contains(err.Error(), "no such socket") {
		t.Errorf("no socket: %v", err)
	}
}

// A secret is nowhere but in the standard input and the file.
func TestNoSecretInSight(t *testing.T) {
	const canary = "canary-4f1c9b2e7a"
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n, func(o *Options) {
		o.Redact = func(s string) string { return strings.ReplaceAll(s, canary, "<redacted>") }
	})
	n.Program(t, "chmod", `cat /proc/*/cmdline >/run/arguments; exec /bin/chmod "$@"`)
	if err := h.Put(within(t), "/etc/rancher/k3s/token", 0o600, []byte(canary)); err != nil {
		t.Fatal(err)
	}
	seen, err := os.ReadFile(n.Path("/run/arguments"))
	if err != nil || !bytes.Contains(seen, []byte("mktemp")) {
		t.Fatalf("the arguments were not recorded: %v\n%q", err, seen)
	}
	if bytes.Contains(seen, []byte(canary)) {
		t.Error("the secret is in the arguments of a process")
	}
	if _, err := h.Run(within(t), "cat >&2; exit 1", []byte(canary)); err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "<redacted>") {
		t.Errorf("an error with the secret: %v", err)
	}
}

func TestClosed(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	h := host(t, n)
	if _, err := h.Run(within(t), "true", nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, err := h.Run(within(t), "true", nil); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("after Close: %v", err)
	}
}
