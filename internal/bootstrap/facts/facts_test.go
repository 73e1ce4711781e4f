package facts

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
)

func TestRead(t *testing.T) {
	if f, err := Read([]byte(`{"format":"slipway-facts/1","node":"n1","k3s":{"etcd":true}}`)); err != nil || f.Node != "n1" || !f.K3s.Knows() {
		t.Errorf("%+v, %v", f, err)
	}
	for _, text := range []string{"{", `{"format":"slipway-facts/2"}`, "{}"} {
		if _, err := Read([]byte(text)); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
	if _, err := Read([]byte(`{}`)); !strings.Contains(diag.HintOf(err), "different releases") {
		t.Errorf("hint %q", diag.HintOf(err))
	}
}

func TestConfigInit(t *testing.T) {
	for text, want := range map[string]bool{
		"cluster-init: true\n":             true,
		"a: b\n\"cluster-init\": \"true\"": true,
		"cluster-init: yes # for once\n":   true,
		"cluster-init: false\n":            false,
		"#cluster-init: true\n":            false,
		"server: https://n1:6443\n":        false,
		"tls-san: [cluster-init]\n":        false,
		"":                                 false,
	} {
		if got := ConfigInit([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestOn(t *testing.T) {
	f := Facts{Interfaces: []Interface{{Name: "lo0", Addresses: []string{"junk"}}, {Name: "enp1s0", Addresses: []string{"fe80::1/64", "10.0.2.15/24"}}}}
	if i, err := f.On(netip.MustParseAddr("10.0.2.15")); err != nil || i.Name != "enp1s0" {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := f.On(netip.MustParseAddr("10.0.2.1")); err == nil {
		t.Error("an address that no interface has")
	}
}

func TestWant(t *testing.T) {
	n := cluster.Node{Data: []cluster.DataDisk{{Name: "data", Selector: cluster.Selector{Serial: "X"}, Policy: cluster.PolicyWipe}}}
	c := cluster.Cluster{Longhorn: cluster.Longhorn{Enabled: true, DataPath: "/var/lib/longhorn"}}
	w := Want(c, n)
	if len(w.Disks) != 1 || w.Disks[0].Path != "/var/lib/longhorn/data" || w.Orders()[0].Policy != cluster.PolicyKeep {
		t.Errorf("%+v", w)
	}
	c.Longhorn.Enabled = false
	if w := Want(c, n); len(w.Disks) != 0 {
		t.Errorf("without Longhorn: %+v", w)
	}
}
