package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/vm-test/sshnode"
)

// serveAgent is an SSH agent that holds keys.
func serveAgent(t *testing.T, keys ...any) string {
	t.Helper()
	ring := agent.NewKeyring()
	for _, k := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: k}); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(ring, c)
		}
	}()
	return socket
}

func private(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// An agent with more keys than sshd takes attempts works when the profile says
// which one is let in.
func TestAgentWithManyKeys(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	data, err := os.ReadFile(n.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	right, err := ssh.ParseRawPrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	var keys []any
	for range 8 {
		k := private(t)
		keys = append(keys, &k)
	}
	l, err := Open(serveAgent(t, append(keys, right)...), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host(t, n, func(o *Options) { o.Login = l }).Run(within(t), "true", nil); err == nil {
		t.Error("sshd takes any number of attempts: this test proves nothing")
	}
	h := host(t, n, func(o *Options) { o.Login, o.Authorized = l, []string{n.Public + " a comment"} })
	if _, err := h.Run(within(t), "true", nil); err != nil {
		t.Error(err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	key := private(t)
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"locked": pem.EncodeToMemory(locked), "plain": pem.EncodeToMemory(plain), "public": []byte("ssh-ed25519 AAAA x\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, hint := range map[string]string{"locked": "ssh-add", "public": "not the .pub"} {
		if _, err := Open("", []string{in(name)}, nil); err == nil || !strings.Contains(diag.HintOf(err), hint) {
			t.Errorf("%s: %v, hint %q", name, err, diag.HintOf(err))
		}
	}
	if _, err := Open("", []string{in("none")}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a named file that is not there: %v", err)
	}
	l, err := Open(in("no-agent"), nil, []string{in("none"), in("locked"), in("plain")})
	if err != nil || len(l.signers) != 1 || len(l.skipped) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	o, err := l.methods(t.Context(), nil)
	if err != nil || !strings.Contains(o.String(), "needs a passphrase; the SSH agent does not answer") {
		t.Errorf("%s, %v", o, err)
	}
	if files := DefaultFiles("/home/x"); files[0] != "/home/x/.ssh/id_ed25519" {
		t.Errorf("%v", files)
	}
}
