package servers

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway/slipway/internal/bootstrap/etcd"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/k3s"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/bootstrap/ssh"
	"github.com/slipway/slipway/internal/bootstrap/survey"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/sequence"
	"github.com/slipway/slipway/vm-test/labbin"
	"github.com/slipway/slipway/vm-test/netns"
	"github.com/slipway/slipway/vm-test/sshnode"
)

func TestMain(m *testing.M) {
	if unit := os.Getenv(unitWord); unit != "" {
		os.Exit(supervise(unit))
	}
	os.Exit(netns.Main(m))
}

// limit bounds every wait; on an idle machine a server votes in ten seconds.
const limit = 10 * time.Minute

// token is what the servers join with, and what must be seen nowhere.
const token = "canary-of-the-servers-0815"

// lab is the lab's three servers, and an agent beside them.
type lab struct {
	t        *testing.T
	cluster  cluster.Cluster
	nodes    map[string]*sshnode.Node
	hosts    map[string]*ssh.Host
	wires    map[string]*netns.Host
	survey   *survey.Survey
	recorded *identity.Cluster
	programs map[string]string // on the hosts, by name: paths of ours
	dir      string
	said     strings.Builder // everything that people would see
}

func open(t *testing.T) *lab {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("hosts with sshd need root")
	}
	p, err := profilefile.Load("../../profiles/lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, cluster: p.Cluster, nodes: map[string]*sshnode.Node{}, hosts: map[string]*ssh.Host{}, wires: map[string]*netns.Host{}, dir: t.TempDir()}
	// No runtime and none of the node's kernel settings are here.
	l.cluster.K3s.Config = map[string]string{"container-runtime-endpoint": "unix:///run/cri.sock", "protect-kernel-defaults": "false"}
	l.cluster.Nodes = append(slices.Clone(l.cluster.Nodes), cluster.Node{
		Name: "n4", Role: cluster.RoleAgent,
		Interfaces: []cluster.Interface{{MAC: "52:54:00:12:34:59", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.2.18/24")}}},
	})
	l.programs = programs(t)
	bridge := netns.Bridge(t, "10.0.2.1/24")
	for _, n := range l.cluster.Nodes {
		wire := netns.NewHost(t)
		netns.Plug(t, bridge, wire, string(n.Interfaces[0].MAC), n.Interfaces[0].Addresses[0].String())
		wire.Run(t, "ip", "route", "add", "default", "via", l.cluster.Network.Gateway.String())
		l.wires[n.Name] = wire
		l.install(n.Name)
	}
	return l
}

func programs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	var err error
	for _, name := range []string{"k3s", "fakecri"} {
		if out[name], err = labbin.Build(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	out["slipway-node"] = filepath.Join(t.TempDir(), "nodeinit")
	build := exec.Command("go", "build", "-o", out["slipway-node"], "../../cmd/nodeinit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// install gives a node a fresh system: nothing of the one before is left.
func (l *lab) install(name string) {
	l.t.Helper()
	if old := l.nodes[name]; old != nil {
		old.Stop()
		l.hosts[name].Close()
	}
	address := ""
	for _, n := range l.cluster.Nodes {
		if n.Name == name {
			address = n.Address().String() + ":22"
		}
	}
	node := sshnode.Start(l.t, sshnode.Options{Host: l.wires[name], Name: name, Listen: address})
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	id := make([]byte, 16)
	rand.Read(id)
	node.Write(l.t, "/etc/machine-id", hex.EncodeToString(id)+"\n", 0o444)
	node.Program(l.t, "systemctl", fmt.Sprintf(systemctl, self))
	node.Program(l.t, "journalctl", journalctl)
	for program, path := range l.programs {
		node.Program(l.t, program, "exec "+path+` "$@"`)
	}
	login, err := ssh.Open("", []string{node.KeyFile}, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	redact := func(s string) string { return strings.ReplaceAll(s, token, "<redacted>") }
	l.nodes[name] = node
	l.hosts[name] = ssh.New(ssh.Options{Node: name, Address: node.Address, User: sshnode.Operator, HostKeys: []string{node.HostKey}, Login: login, Redact: redact})
	l.run(name, "setsid fakecri /run/cri.sock </dev/null >/dev/null 2>&1 &")
	nodes := map[string]survey.Node{}
	for name, h := range l.hosts {
		nodes[name] = h
	}
	l.survey = survey.New(nodes, time.Now)
}

// run runs a command on a node that must succeed.
func (l *lab) run(name, command string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	out, err := l.hosts[name].Run(ctx, command, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(out)
}

// options are what bootstrap's story gives the steps.
func (l *lab) options() k3s.Options {
	return k3s.Options{
		Cluster: l.cluster, Survey: l.survey,
		Node:     func(name string) k3s.Node { return l.hosts[name] },
		Recorded: func(context.Context) (*identity.Cluster, error) { return l.recorded, nil },
		Etcd:     l.members,
		Token:    func() (string, error) { return token, nil },
		Pause: func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(500 * time.Millisecond):
				return nil
			}
		},
	}
}

// etcd is a client through a server, with the certificates that lie there.
func (l *lab) etcd(ctx context.Context, via string) (*etcd.Client, error) {
	const dir = k3sconf.DataDir + "/server/tls/etcd/"
	files := map[string][]byte{}
	for _, name := range []string{"client.crt", "client.key", "server-ca.crt"} {
		data, err := l.hosts[via].Get(ctx, dir+name)
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	pair, err := tls.X509KeyPair(files["client.crt"], files["client.key"])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(files["server-ca.crt"])
	return etcd.New(etcd.Config{
		Endpoints: []string{"https://127.0.0.1:2379"}, Dial: l.hosts[via].Dial,
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots},
	}), nil
}

func (l *lab) members(ctx context.Context, via string) (member.State, error) {
	c, err := l.etcd(ctx, via)
	if err != nil {
		return member.State{}, err
	}
	defer c.Close()
	return c.State(ctx)
}

// up runs the steps. stop, when it is there, ends the run at an event.
func (l *lab) up(stop func(sequence.Event) bool) (did int, err error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), limit)
	defer cancel()
	start := time.Now()
	r := sequence.Runner{Now: time.Now, On: func(e sequence.Event) {
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Kind, e.Node, e.Step, e.Words))
		for _, c := range e.Changes {
			line += fmt.Sprintf("; %s %s (%s)", c.Verb, c.What, c.Why)
		}
		l.said.WriteString(line + "\n")
		if e.Kind != sequence.Skipped {
			l.t.Logf("%5.1f s  %s", time.Since(start).Seconds(), line)
		}
		if stop != nil && stop(e) {
			cancel()
		}
	}}
	for _, n := range l.cluster.Nodes {
		l.survey.Forget(n.Name)
	}
	o := l.options()
	steps := append(k3s.Steps(o), k3s.Kubeconfig(o, l.kubeconfig(), time.Now))
	did, err = r.Run(ctx, steps)
	if err != nil {
		l.said.WriteString(err.Error() + "\n")
	}
	return did, err
}

func (l *lab) kubeconfig() string { return filepath.Join(l.dir, "state", "kubeconfig") }

// api asks the cluster, by the kubeconfig that bootstrap brought here.
func (l *lab) api(method, path string) (int, string) {
	l.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, via := range []string{"n1", "n2", "n3"} { // whichever is alive
		if config, err = fallback(l.kubeconfig(), "harbor-lab-"+via); err != nil {
			continue
		}
		config.Timeout = 30 * time.Second
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			l.t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(l.t.Context(), method, config.Host+path, nil)
		if err != nil {
			l.t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			continue
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	return 0, ""
}

// fallback is one of the contexts of the kubeconfig; n1 is the first and has none.
func fallback(path, name string) (*rest.Config, error) {
	load := func(context string) (*rest.Config, error) {
		return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	}
	if name == "harbor-lab-n1" {
		return load("harbor-lab")
	}
	return load(name)
}

// until waits for something.
func (l *lab) until(what string, done func() bool) {
	l.t.Helper()
	for start := time.Now(); !done(); time.Sleep(500 * time.Millisecond) {
		if time.Since(start) > limit {
			l.t.Fatalf("%s: not within %s", what, limit)
		}
	}
}
