package canary

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/secrets"
	"github.com/slipway/slipway/vm-test/sshnode"
)

// The planted secrets. What is looked for is the middle of each, so that quoting at
// the ends hides nothing.
const (
	token = "canary-k3s-token-5f0a9c"
	other = "canary-git-password-77e1"
)

func planted() []string {
	var out []string
	for _, s := range []string{token, other} {
		out = append(out, s, base64.StdEncoding.EncodeToString([]byte(s)))
	}
	return out
}

// lab is three nodes, and a profile with its secrets.
type lab struct {
	dir, profile, key string
	nodes             map[string]*sshnode.Node
	said              bytes.Buffer // everything that bootstrap printed
}

func open(t *testing.T) *lab {
	t.Helper()
	l := &lab{dir: t.TempDir(), nodes: map[string]*sshnode.Node{}}
	profiles := filepath.Join(l.dir, "profiles")
	if err := os.CopyFS(profiles, os.DirFS("../../profiles")); err != nil {
		t.Fatal(err)
	}
	l.profile = filepath.Join(profiles, "lab.yaml")
	p, err := profilefile.Load(l.profile)
	if err != nil {
		t.Fatal(err)
	}
	l.seal(t, filepath.Join(profiles, "lab.secrets.yaml"))
	for i, n := range p.Cluster.Nodes {
		node := sshnode.Start(t, sshnode.Options{Name: n.Name})
		text, err := json.Marshal(says(p.Cluster, n, i))
		if err != nil {
			t.Fatal(err)
		}
		node.Write(t, "/etc/facts.json", string(text), 0o644)
		node.Program(t, "slipway-node", `test "$1" = facts && cat /etc/facts.json`)
		node.Program(t, "systemctl", `exit 0`)
		l.nodes[n.Name] = node
	}
	return l
}

// seal writes the secrets, and the key that opens them.
func (l *lab) seal(t *testing.T, path string) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	l.key = filepath.Join(l.dir, "age.txt")
	if err := os.WriteFile(l.key, []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := fmt.Sprintf("%s: %s\n%s: %s\n", secrets.Token, token, secrets.GitToken, other)
	sealed, err := secrets.Encrypt([]byte(plain), []string{key.Recipient().String()}, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
}

// says is what a fresh node of the lab says of itself.
func says(c cluster.Cluster, n cluster.Node, i int) facts.Facts {
	id := fmt.Sprint(i + 1)
	f := facts.Facts{
		Format: facts.Format, Node: n.Name, Environment: c.Environment, Cluster: c.Name,
		MachineID: "machine-" + id, BootID: "boot-" + id, Initiator: "iqn-" + id, HostKeys: []string{"ssh-ed25519 KEY" + id + " x"},
		Clock:      facts.Clock{Now: time.Now(), Synchronised: true},
		Interfaces: []facts.Interface{{Name: "enp1s0", MAC: string(n.Interfaces[0].MAC), Up: true, Addresses: []string{n.Interfaces[0].Addresses[0].String()}}},
		Routes: []facts.Route{
			{Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: c.Network.Gateway, Interface: "enp1s0"},
			{Destination: c.Network.LAN, Interface: "enp1s0"},
		},
		Disks: []machine.Disk{
			{Name: "vda", Serial: n.System.Serial, Size: 8e9, Boot: true, Content: []machine.Signature{{Type: "gpt"}}},
			{Name: "vdb", Serial: n.Data[0].Selector.Serial, Size: 8e9, Content: []machine.Signature{{Type: "ext4", Label: disklayout.NameData, UUID: "uuid-" + id}}},
		},
		K3s: facts.K3s{Version: c.K3s.Version, Unit: "k3s.service", State: "inactive"},
	}
	for _, w := range facts.Want(c, n).Disks {
		f.Data = append(f.Data, facts.Mount{Name: w.Name, Serial: w.Disk.Serial, UUID: "uuid-" + id, Path: w.Path, Mounted: true})
	}
	return f
}

// bootstrap is the command with the flags that lead to the lab.
func (l *lab) bootstrap(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{name, "-p", l.profile, "--state", l.state()}, args...)
	for node, n := range l.nodes {
		args = append(args, "--ssh-key", n.KeyFile, "--address", node+"="+n.Address)
	}
	cmd := exec.CommandContext(t.Context(), "../../bin/bootstrap", args...)
	cmd.Env = append(os.Environ(), "HOME="+l.dir, "SSH_AUTH_SOCK=", "SLIPWAY_PXED_SOCKET="+filepath.Join(l.dir, "none"))
	cmd.Stdout, cmd.Stderr = &l.said, &l.said
	return cmd
}

func (l *lab) state() string { return filepath.Join(l.dir, "state") }

// watch looks at the arguments of all processes until it is stopped, and returns
// those that hold a planted secret.
func watch() (stop func() []string) {
	var found []string
	done, all := make(chan struct{}), sync.WaitGroup{}
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
			lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, file := range lines {
				text, _ := os.ReadFile(file)
				if hit := holds(text); hit != "" {
					found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
				}
			}
		}
	})
	return func() []string { close(done); all.Wait(); return found }
}

// holds is the planted secret that text holds, or "".
func holds(text []byte) string {
	for _, s := range planted() {
		if bytes.Contains(text, []byte(s)) {
			return s
		}
	}
	return ""
}
