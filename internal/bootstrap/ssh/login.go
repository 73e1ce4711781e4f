package ssh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/slipway/slipway/internal/bootstrap/ssh/hostkey"
	"github.com/slipway/slipway/internal/diag"
)

// Login holds what an operator logs in with: keys out of files, and an agent.
type Login struct {
	agent   string
	signers []named
	skipped []string // why files were left out
}

// named is a private key and where it is from.
type named struct {
	ssh.Signer
	from string
}

// DefaultFiles are the private keys that ssh looks for in a home directory.
func DefaultFiles(home string) []string {
	var out []string
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		out = append(out, filepath.Join(home, ".ssh", name))
	}
	return out
}

// Open reads private keys. agentSocket is SSH_AUTH_SOCK, or "". Every one of files
// must be usable; of defaults those are taken that are there and need no passphrase.
func Open(agentSocket string, files, defaults []string) (*Login, error) {
	l := &Login{agent: agentSocket}
	for _, path := range files {
		signer, err := readKey(path)
		if err != nil {
			return nil, err
		}
		l.signers = append(l.signers, named{signer, path})
	}
	for _, path := range defaults {
		switch signer, err := readKey(path); {
		case err == nil:
			l.signers = append(l.signers, named{signer, path})
		case !errors.Is(err, fs.ErrNotExist):
			l.skipped = append(l.skipped, err.Error())
		}
	}
	return l, nil
}

func readKey(path string) (ssh.Signer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, diag.WithHint(fmt.Errorf("the private key %s needs a passphrase", path), "give it to an agent: ssh-add "+path)
	}
	if err != nil {
		return nil, diag.WithHint(fmt.Errorf("%s is no private SSH key: %w", path, err), "name the private key, not the .pub file")
	}
	return signer, nil
}

// offer is what one attempt to log in offers.
type offer struct {
	methods []ssh.AuthMethod
	keys    []named
	skipped []string
	agent   net.Conn
}

func (o *offer) close() {
	if o.agent != nil {
		o.agent.Close()
	}
}

// methods collects the keys of files and agent. The agent is asked each time: keys
// come and go, and its connection serves one handshake.
func (l *Login) methods(ctx context.Context, authorized []string) (*offer, error) {
	o := &offer{skipped: slices.Clone(l.skipped), keys: slices.Clone(l.signers)}
	if l.agent != "" {
		if err := o.addAgent(ctx, l.agent); err != nil {
			o.skipped = append(o.skipped, err.Error())
		}
	}
	if len(o.keys) == 0 {
		o.close()
		return nil, hinted("name one with --identity, or start an agent and use ssh-add", "there is no private key to log in with%s", o.notes())
	}
	o.prefer(authorized)
	var signers []ssh.Signer
	for _, k := range o.keys {
		signers = append(signers, k.Signer)
	}
	o.methods = []ssh.AuthMethod{ssh.PublicKeys(signers...)}
	return o, nil
}

func (o *offer) addAgent(ctx context.Context, socket string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("the SSH agent does not answer: %w", err)
	}
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		conn.Close()
		return fmt.Errorf("asking the SSH agent for its keys: %w", err)
	}
	o.agent = conn
	for _, s := range signers {
		o.keys = append(o.keys, named{s, "the agent"})
	}
	return nil
}

// prefer puts the keys first that the node is known to let in.
func (o *offer) prefer(authorized []string) {
	listed := func(k named) int {
		if hostkey.Contains(authorized, string(ssh.MarshalAuthorizedKey(k.PublicKey()))) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(o.keys, func(a, b named) int { return listed(a) - listed(b) })
}

// String names the keys, for an error.
func (o *offer) String() string {
	var out []string
	for _, k := range o.keys {
		out = append(out, fmt.Sprintf("%s of %s", hostkey.Show(k.PublicKey()), k.from))
	}
	return strings.Join(out, ", ") + o.notes()
}

func (o *offer) notes() string {
	if len(o.skipped) == 0 {
		return ""
	}
	return " (" + strings.Join(o.skipped, "; ") + ")"
}

func (o *offer) advice(user string) string {
	return fmt.Sprintf("use a key that the profile lists in access.users for %s: --identity FILE, or ssh-add FILE", user)
}
