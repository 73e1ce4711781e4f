package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// must are the flags without which a server of labk3s does not start.
const must = "flannel-backend: none\ndisable-kube-proxy: true\ndisable-network-policy: true\nnode-ip: 192.0.2.1\n"

func config(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFlagsWinOverFileAndEnvironment(t *testing.T) {
	t.Setenv("K3S_TOKEN", "from-environment")
	t.Setenv("K3S_NODE_NAME", "Env")
	file := config(t, must+"token: from-file\ntls-san: [a, 'b,c']\nnode-label: [x=1]\n")
	s, err := Parse("server", []string{"--config", file, "--tls-san=d", "--node-label", "y=2", "--https-listen-port=7443"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Token != "from-file" || s.NodeName != "env" || s.Port != 7443 {
		t.Errorf("token %q, node name %q, port %d", s.Token, s.NodeName, s.Port)
	}
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(s.SANs, want) {
		t.Errorf("names of the API %q, want %q", s.SANs, want)
	}
	if want := []string{"x=1", "y=2"}; !slices.Equal(s.Labels, want) {
		t.Errorf("labels %q, want %q", s.Labels, want)
	}
}

func TestDefaults(t *testing.T) {
	s, err := Parse("server", []string{"-c=" + config(t, must+"service-cidr: 10.99.0.0/16\n")})
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{
		"10.99.0.10": s.ClusterDNS,
		"10.99.0.1":  s.ServiceIP(),
		"192.0.2.1":  s.AdvertiseAddress,
		"/var/lib/rancher/k3s/server/db/snapshots": s.SnapshotDir,
		"/etc/rancher/k3s/k3s.yaml":                s.Kubeconfig,
		"/var/lib/rancher/k3s/agent/images":        s.AgentDir("images"),
	} {
		if got != name {
			t.Errorf("got %s, want %s", got, name)
		}
	}
	if s.Heartbeat != 500*time.Millisecond || s.Election != 5*time.Second {
		t.Errorf("etcd's times are %s and %s", s.Heartbeat, s.Election)
	}
}

func TestTokenFile(t *testing.T) {
	secret := config(t, "secret\n")
	s, err := Parse("agent", []string{"--config=/nonexistent", "--token-file=" + secret, "--server=https://192.0.2.2:6443", "--node-ip=192.0.2.1"})
	if err != nil || s.Token != "secret" {
		t.Errorf("token %q, %v", s.Token, err)
	}
}

func TestFileOfAServerServesAnAgent(t *testing.T) {
	file := config(t, must+"token: x\nserver: https://192.0.2.2:6443\nno-such-flag: 1\n")
	if _, err := Parse("agent", []string{"--config=" + file}); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	for want, c := range map[string]struct{ role, text, args string }{
		"flannel":                {"server", "node-ip: 192.0.2.1\n", ""},
		"kube-proxy":             {"server", "node-ip: 192.0.2.1\nflannel-backend: none\n", ""},
		"service-cidr":           {"server", must + "service-cidr: nonsense\n", ""},
		"node-ip":                {"server", must + "node-ip: nonsense\n", ""},
		"--server is required":   {"agent", "node-ip: 192.0.2.1\ntoken: x\n", ""},
		"--token is required":    {"agent", "node-ip: 192.0.2.1\nserver: https://x\n", ""},
		"not a flag":             {"server", must, "surplus"},
		"unknown flag":           {"server", must, "--no-such-flag=1"},
		"labk3s does not know":   {"server", must + "etcd-arg: [quota-backend-bytes=1]\n", ""},
		"number of milliseconds": {"server", must + "etcd-arg: [heartbeat-interval=x]\n", ""},
	} {
		args := []string{"--config=" + config(t, c.text)}
		if c.args != "" {
			args = append(args, c.args)
		}
		if _, err := Parse(c.role, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestEtcdTimes(t *testing.T) {
	s, err := Parse("server", []string{"--config=" + config(t, must+"etcd-arg: [heartbeat-interval=200, election-timeout=2000]\n")})
	if err != nil || s.Heartbeat != 200*time.Millisecond || s.Election != 2*time.Second {
		t.Errorf("etcd's times are %s and %s, %v", s.Heartbeat, s.Election, err)
	}
}
