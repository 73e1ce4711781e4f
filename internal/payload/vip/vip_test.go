package vip_test

import (
	"bytes"
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/payload/vip"
	"github.com/slipway/slipway/internal/profilefile"
)

var update = flag.Bool("update", false, "write what the tests see to their golden files")

func load(t *testing.T, name string) cluster.Cluster {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "..", "profiles", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Cluster
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestFiles(t *testing.T) {
	c := load(t, "dev")
	for _, n := range c.Nodes {
		tree, err := vip.Files(c, n)
		if err != nil {
			t.Fatal(err)
		}
		conf, _ := tree.Lookup("etc/slipway/keepalived.conf")
		golden(t, n.Name+".conf", conf.Content)
		check, ok := tree.Lookup("etc/slipway/check-api")
		if !ok || check.Mode.Perm() != 0o755 {
			t.Errorf("%s: check %+v", n.Name, check)
		}
		golden(t, "check-api", check.Content)
	}
	agent := c.Nodes[2]
	agent.Role = cluster.RoleAgent
	for _, tt := range []struct {
		c cluster.Cluster
		n cluster.Node
	}{{load(t, "lab"), c.Nodes[0]}, {c, agent}} {
		if tree, err := vip.Files(tt.c, tt.n); err != nil || tree.Len() != 0 {
			t.Errorf("a node that takes no part has %d files, %v", tree.Len(), err)
		}
	}
	c.Nodes[1].Interfaces = []cluster.Interface{{DHCP: true}}
	if _, err := vip.Files(c, c.Nodes[0]); err == nil || !strings.Contains(err.Error(), "node n2 has no address") {
		t.Errorf("got %v", err)
	}
}

// keepalived itself reads what a node gets, with the interface's name beside it, and
// also where there is one server only. It does so in a network of its own.
func TestKeepalivedReadsIt(t *testing.T) {
	all := load(t, "dev")
	one := all
	one.Nodes = all.Nodes[:1]
	for name, c := range map[string]cluster.Cluster{"three": all, "one": one} {
		p := vip.OnNode()
		p.Dir = "/run/slipway"
		config, err := vip.Config(c, c.Nodes[0], p)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, vip.ConfigName), config, 0o644)
		write(t, filepath.Join(dir, vip.CheckName), vip.Check(p), 0o755)
		write(t, filepath.Join(dir, filepath.Base(vip.InterfacePath)), []byte("$LAN=lan\n"), 0o644)
		script := "set -e; ip link add lan type veth peer name other; ip link set lan up; ip address add 192.168.124.11/24 dev lan;" +
			"mount -t tmpfs none /run; mkdir /run/slipway; cp " + dir + "/* /run/slipway/;" +
			"keepalived --config-test --use-file /run/slipway/keepalived.conf --log-console --no-syslog 2>&1"
		out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: "unshare", Args: []string{"--map-root-user", "--net", "--mount", "sh", "-c", script}})
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func write(t *testing.T, path string, data []byte, perm os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, data, perm); err != nil {
		t.Fatal(err)
	}
}

// The script asks with the client's certificate, and fails when nothing listens,
// when the server is another one, and when it is not ready.
func TestCheck(t *testing.T) {
	status := http.StatusOK
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || len(r.TLS.PeerCertificates) == 0 {
			status = http.StatusTeapot
		}
		w.WriteHeader(status)
	}))
	p, clients := certificates(t)
	api.TLS = clients
	api.StartTLS()
	defer api.Close()
	p.URL = api.URL
	script := filepath.Join(t.TempDir(), "check")
	run := func() error {
		write(t, script, vip.Check(p), 0o755)
		_, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: "sh", Args: []string{script}})
		return err
	}
	if err := run(); err != nil {
		t.Errorf("ready: %v (status %d)", err, status)
	}
	status = http.StatusInternalServerError
	if run() == nil {
		t.Error("an API server that is not ready passes")
	}
	status = http.StatusOK
	write(t, filepath.Join(p.TLS, "server-ca.crt"), []byte("nobody\n"), 0o600)
	if run() == nil {
		t.Error("an unknown API server passes")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.URL = "https://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if run() == nil {
		t.Error("nobody listens, and it passes")
	}
}
