package facts

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	told "github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/payload/k3sconf"
)

// node makes a node out of files.
func node(t *testing.T, files map[string]string) Source {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	answers := map[string]string{
		"k3s --version": "k3s version v1.34.4+k3s1 (abc)\ngo version go1.24\n",
		"systemctl show --property=ActiveState --value k3s.service":       "activating\n",
		"systemctl show --property=ActiveState --value k3s-agent.service": "active\n",
	}
	return Source{
		Root: dir,
		Run: func(_ context.Context, name string, args ...string) []byte {
			return []byte(answers[name+" "+strings.Join(args, " ")])
		},
		Clock: func() (time.Time, bool) { return time.Unix(1_800_000_000, 0).UTC(), true },
	}
}

const certificate = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"

const member = "/var/lib/rancher/k3s"

func full() map[string]string {
	return map[string]string{
		"/proc/sys/kernel/hostname": "n1\n", "/proc/sys/kernel/random/boot_id": "b-1\n", "/etc/machine-id": "0123\n",
		"/run/cloud-init/.instance-id":   "n1-abc\n",
		"/run/slipway/baseline.json":     `{"environment":"lab","cluster":"harbor","node":"n1"}`,
		"/etc/ssh/ssh_host_a_key.pub":    "ssh-ed25519 AAAA\n",
		"/etc/ssh/ssh_host_a_key":        "never read",
		"/etc/iscsi/initiatorname.iscsi": "# comment\nInitiatorName=iqn.1993-08.org.debian:01:abc\n",
		"/etc/adjtime":                   "0.0 0 0.0\n0\nLOCAL\n",
		"/proc/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
			"enp1s0\t00000000\t0202000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\nenp1s0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n",
		"/etc/rancher/k3s/config.yaml":             "token-file: x\n",
		"/etc/rancher/k3s/config.yaml.d/90-b.YAML": "cluster-init: true\n",
		"/etc/rancher/k3s/config.yaml.d/10-a.yml":  "debug: true\n",
		"/etc/rancher/k3s/config.yaml.d/README":    "no\n",
		"/etc/rancher/node/password":               "secret-of-the-node",
		member + "/server/db/etcd/member/snap/db":  "x",
		member + "/server/db/etcd/name":            "n1-1f0c9a31\n",
		member + "/server/tls/server-ca.crt":       certificate,
		member + "/agent/client-kubelet.crt":       "PEM",
		"/etc/slipway/data.json":                   `{"format":"slipway-data/1","mounts":[{"name":"data","path":"/var/lib/longhorn/data"},{"name":"more","path":"/var/lib/longhorn/more"}]}`,
		"/proc/self/mountinfo":                     "36 25 254:17 / /var/lib/longhorn/data rw - ext4 /dev/vdb1 rw\n",
	}
}

func TestCollect(t *testing.T) {
	f := Collect(t.Context(), node(t, full()))
	want := told.K3s{
		Version: "v1.34.4+k3s1", Config: true, Init: true, DropIns: []string{"10-a.yml", "90-b.YAML"}, Etcd: true,
		Member: "n1-1f0c9a31", CA: digest.Of([]byte("ABC")), TokenCA: digest.Of([]byte(certificate)).Hex(), Joined: true, Password: true, Unit: "k3s.service", State: "activating",
	}
	got, _ := json.Marshal(f.K3s)
	if wanted, _ := json.Marshal(want); string(got) != string(wanted) {
		t.Errorf("k3s\n%s\nwant\n%s", got, wanted)
	}
	if f.Node != "n1" || f.MachineID != "0123" || f.BootID != "b-1" || f.InstanceID != "n1-abc" || f.Environment != "lab" || f.Cluster != "harbor" {
		t.Errorf("identity %+v", f)
	}
	if !slices.Equal(f.HostKeys, []string{"ssh-ed25519 AAAA"}) || f.Initiator != "iqn.1993-08.org.debian:01:abc" {
		t.Errorf("keys %q, initiator %q", f.HostKeys, f.Initiator)
	}
	if !f.Clock.LocalRTC || !f.Clock.Synchronised || f.Clock.Now.Unix() != 1_800_000_000 {
		t.Errorf("clock %+v", f.Clock)
	}
	routes := []told.Route{
		{Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("10.0.2.2"), Interface: "enp1s0"},
		{Destination: netip.MustParsePrefix("10.0.2.0/24"), Interface: "enp1s0"},
	}
	if !slices.Equal(f.Routes, routes) {
		t.Errorf("routes %+v", f.Routes)
	}
	if len(f.Data) != 2 || !f.Data[0].Mounted || f.Data[1].Mounted {
		t.Errorf("data %+v", f.Data)
	}
	if all, _ := json.Marshal(f); strings.Contains(string(all), "secret-of-the-node") {
		t.Error("the node password is among the facts")
	}
}

// A fresh node knows nothing of a cluster, and what it says can be read.
func TestFresh(t *testing.T) {
	f := Collect(t.Context(), node(t, map[string]string{"/etc/slipway/agent": "x"}))
	if f.K3s.Knows() || f.K3s.Joined || f.K3s.Config || f.K3s.Init || f.Clock.LocalRTC {
		t.Errorf("%+v", f)
	}
	if f.K3s.Unit != "k3s-agent.service" || f.K3s.State != "active" {
		t.Errorf("the agent's unit: %+v", f.K3s)
	}
	text, err := json.Marshal(f)
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := told.Read(text); err != nil {
		t.Error(err)
	}
}

// A bundle of a rotated CA has no hash that could be told without its chain.
func TestBundle(t *testing.T) {
	f := Collect(t.Context(), node(t, map[string]string{member + "/server/tls/server-ca.crt": certificate + certificate}))
	if f.K3s.CA != digest.Of([]byte("ABC")) || f.K3s.TokenCA != "" || !f.K3s.Knows() {
		t.Errorf("%+v", f.K3s)
	}
	if f := Collect(t.Context(), node(t, map[string]string{member + "/server/tls/server-ca.crt": "cut"})); f.K3s.Knows() {
		t.Errorf("%+v", f.K3s)
	}
}

func TestPathsAreThoseOfTheConfiguration(t *testing.T) {
	for ours, theirs := range map[string]string{
		configPath: k3sconf.ConfigPath, dropInDir: k3sconf.DropInDir, agentMark: k3sconf.AgentMark, dataDir: k3sconf.DataDir,
		"k3s.service": k3sconf.Unit(cluster.RoleServer), "k3s-agent.service": k3sconf.Unit(cluster.RoleAgent),
	} {
		if ours != theirs {
			t.Errorf("%s, it is %s", ours, theirs)
		}
	}
}

func TestHere(t *testing.T) {
	s := Here()
	if now, _ := s.Clock(); time.Since(now).Abs() > time.Minute {
		t.Errorf("clock %s", now)
	}
	if s.Run(t.Context(), "false") != nil || string(s.Run(t.Context(), "echo", "x")) != "x\n" {
		t.Error("programs are not run")
	}
}
