package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/profilefile"
)

func lab(t *testing.T) cluster.Cluster {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "..", "profiles", "lab.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Cluster
}

// good is what the nodes of the lab say when nothing speaks against it.
func good(t *testing.T) Input {
	t.Helper()
	c := lab(t)
	in := Input{Cluster: c}
	for i, n := range c.Nodes {
		id := string(rune('1' + i))
		f := facts.Facts{
			Format: facts.Format, Node: n.Name, Environment: c.Environment, Cluster: c.Name,
			MachineID: "machine-" + id, BootID: "boot-" + id, Initiator: "iqn-" + id, HostKeys: []string{"ssh-ed25519 KEY" + id + " x"},
			Clock:      facts.Clock{Synchronised: true},
			Interfaces: []facts.Interface{{Name: "enp1s0", MAC: string(n.Interfaces[0].MAC), Up: true, Addresses: []string{n.Interfaces[0].Addresses[0].String(), "fe80::" + id + "/64"}}},
			Routes: []facts.Route{
				{Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: c.Network.Gateway, Interface: "enp1s0"},
				{Destination: c.Network.LAN, Interface: "enp1s0"},
			},
			Disks: []machine.Disk{
				{Name: "vda", Serial: n.System.Serial, Size: 8e9, Boot: true, Content: []machine.Signature{{Type: "gpt"}, {Partition: 5, Type: "ext4", UUID: "same-on-all"}}},
				{Name: "vdb", Serial: n.Data[0].Selector.Serial, Size: 8e9},
			},
			K3s: facts.K3s{Version: c.K3s.Version, Unit: "k3s.service", State: "inactive"},
		}
		in.Seen = append(in.Seen, facts.Seen{Node: n.Name, Facts: f, Behind: -10 * time.Millisecond, Ahead: 10 * time.Millisecond})
	}
	return in
}

// living makes them members of a cluster.
func living(in *Input) {
	ca := digest.Of([]byte("one"))
	in.Recorded = &identity.Cluster{Environment: "lab", Name: "harbor", CA: ca}
	in.Etcd = &member.State{Health: map[member.ID]member.Health{}}
	for i, n := range in.Cluster.Nodes {
		k := &in.Seen[i].Facts.K3s
		k.Config, k.Etcd, k.CA, k.State, k.Joined = true, true, ca, "active", true
		in.Recorded.Nodes = append(in.Recorded.Nodes, identity.Node{Name: n.Name, Addresses: []string{n.Address().String()}})
		m := member.Member{ID: member.ID(i + 1), Name: n.Name + "-1", PeerURLs: []string{"https://" + n.Address().String() + ":2380"}}
		in.Etcd.Members = append(in.Etcd.Members, m)
		in.Etcd.Health[m.ID] = member.Health{Answers: true, Healthy: true}
	}
}

func TestNothingSpeaksAgainstIt(t *testing.T) {
	in := good(t)
	if err := Check(in); err != nil {
		t.Errorf("fresh nodes: %v", err)
	}
	living(&in)
	in.Seen[0].Facts.Routes = append(in.Seen[0].Facts.Routes, facts.Route{Destination: netip.MustParsePrefix("10.42.1.0/24"), Interface: "cilium_host"})
	if err := Check(in); err != nil {
		t.Errorf("a living cluster: %v", err)
	}
}

// Each row spoils one thing, and must find that and nothing else.
func TestFindings(t *testing.T) {
	type spoil func(*Input)
	first := func(change func(*facts.Facts)) spoil {
		return func(in *Input) { change(&in.Seen[0].Facts) }
	}
	for _, c := range []struct {
		name, want, hint string
		spoil            spoil
	}{
		{"design-only", "the profile is design-only", "status: active", func(in *Input) { in.Cluster.Status = cluster.StatusDesignOnly }},
		{"unreachable", "n2: 10.0.2.16:22 does not answer", "is it switched on", func(in *Input) {
			in.Seen[1].Err = diag.WithHint(errors.New("n2: 10.0.2.16:22 does not answer"), "is it switched on?")
		}},
		{"unknown host key", "n1: its host key is not known", "bootstrap trust n1", func(in *Input) {
			in.Seen[0].Err = diag.WithHint(errors.New("n1: its host key is not known"), "bootstrap trust n1")
		}},
		{"another node", "n1: who answers at its address calls itself n9", "right seed", first(func(f *facts.Facts) { f.Node = "n9" })},
		{"another environment", "its seed is of cluster harbor in environment prod", "profile of that environment", first(func(f *facts.Facts) { f.Environment = "prod" })},
		{"machine ids", "n1 and n2 have the same machine id machine-1", "install one of them anew", func(in *Input) { in.Seen[1].Facts.MachineID = "machine-1" }},
		{"host keys", "n1 and n3 have the same SSH host key ssh-ed25519 KEY1", "pass for it", func(in *Input) { in.Seen[2].Facts.HostKeys = []string{"ssh-ed25519 KEY1 other"} }},
		{"initiators", "n2 and n3 have the same iSCSI initiator name iqn-2", "volumes", func(in *Input) { in.Seen[2].Facts.Initiator = "iqn-2" }},
		{"one machine twice", "n1 and n2 have the same boot id", "one machine that answers at both", func(in *Input) { in.Seen[1].Facts.BootID = "boot-1" }},
		{"hardware addresses", "n1 and n2 have the same hardware address 52:54:00:aa:aa:aa", "virtual machine", func(in *Input) {
			for i := range 2 {
				f := &in.Seen[i].Facts
				f.Interfaces = append(f.Interfaces, facts.Interface{Name: "eth9", MAC: "52:54:00:AA:aa:aa"})
			}
		}},
		{"copied data disks", "n1 and n2 have the same data file system UUID f-1", "wipefs", func(in *Input) {
			for i := range 2 {
				in.Seen[i].Facts.Disks[1].Content = []machine.Signature{{Type: "gpt"}, {Partition: 1, Type: "partition", Label: "slipway-data"}, {Partition: 1, Type: "ext4", Label: "slipway-data", UUID: "F-1"}}
			}
		}},
		{"no identity", "n1: it has no machine id", "nodeinit", first(func(f *facts.Facts) { f.MachineID = "" })},
		{"no initiator", "n1: it has no iSCSI initiator name", "nodeinit", first(func(f *facts.Facts) { f.Initiator = "" })},
		{"clock not kept", "n1: its clock is not synchronised", "time.servers", first(func(f *facts.Facts) { f.Clock.Synchronised = false })},
		{"local time", "n1: its hardware clock is in local time", "set-local-rtc 0", first(func(f *facts.Facts) { f.Clock.LocalRTC = true })},
		{"all ahead of us", "n1: its clock is 2.5s ahead of ours", "", func(in *Input) {
			for i := range in.Seen {
				in.Seen[i].Behind, in.Seen[i].Ahead = 2500*time.Millisecond, 2600*time.Millisecond
			}
		}},
		{"no such address", "n1: it has not the address 10.0.2.15 of the profile; it has 10.0.2.77", "write the seed again", first(func(f *facts.Facts) { f.Interfaces[0].Addresses = []string{"10.0.2.77/24"} })},
		{"address on another card", "n1: the address 10.0.2.15 is on enp1s0 (52:54:00:00:00:99), the profile has it on 52:54:00:12:34:56", "cables", first(func(f *facts.Facts) { f.Interfaces[0].MAC = "52:54:00:00:00:99" })},
		{"ranges of the profile", "the service range 10.42.128.0/17 overlaps the pod range 10.42.0.0/16", "common address", func(in *Input) { in.Cluster.Network.ServiceCIDR = netip.MustParsePrefix("10.42.128.0/17") }},
		{"a range of the node", "n1: it has a route to 10.42.0.0/24 by wg0, which overlaps the pod range 10.42.0.0/16", "another range", first(func(f *facts.Facts) {
			f.Routes = append(f.Routes, facts.Route{Destination: netip.MustParsePrefix("10.42.0.0/24"), Interface: "wg0"})
		})},
		{"a module", "n1: kernel module br_netfilter is neither loaded nor built in", "modprobe", first(func(f *facts.Facts) {
			f.Missing = []facts.Missing{{Item: "module", What: "kernel module br_netfilter is neither loaded nor built in", Hint: "try: modprobe br_netfilter"}}
		})},
		{"a foreign data disk", "n1: data disk data: the disk is found, but cannot be used; vdb (serial slipway-n1-data, 8.0 GB): its data shall be kept, but what it holds is not Slipway's: ntfs", "never written over", first(func(f *facts.Facts) { f.Disks[1].Content = []machine.Signature{{Type: "ntfs"}} })},
		{"no data disk", "n1: data disk data: there is no such disk", "correct dataDisks", first(func(f *facts.Facts) { f.Disks = f.Disks[:1] })},
		{"no k3s", "n1: its image has no k3s", "build the image", first(func(f *facts.Facts) { f.K3s.Version = "" })},
		{"another k3s", "n1: its image has k3s v1.1.1+k3s1, the profile wants v1.34.4+k3s1", "build the image anew", first(func(f *facts.Facts) { f.K3s.Version = "v1.1.1+k3s1" })},
		{"was an agent", "n1: it has been an agent", "bootstrap rebuild n1", first(func(f *facts.Facts) { f.K3s.Unit = "k3s-agent.service" })},
		{"not made by us", "n1: it holds data of a cluster that was not made by Slipway", "save what it holds", first(func(f *facts.Facts) { f.K3s.Etcd, f.K3s.CA, f.K3s.State = true, digest.Of(nil), "active" })},
		{"a node of an unknown cluster", "n1: it has been a node of a cluster that nobody here knows", "install it anew", first(func(f *facts.Facts) { f.K3s.Joined = true })},
		{"all wiped, and the ledger knows", "the ledger knows cluster harbor", "--forget", func(in *Input) { in.Recorded = &identity.Cluster{Name: "harbor", CA: digest.Of(nil)} }},
		{"a foreign cluster", "is not the one that the ledger knows", "ledger of this cluster", func(in *Input) {
			living(in)
			in.Recorded.CA = digest.Of([]byte("another"))
		}},
		{"two clusters", "the servers serve different clusters", "take the nodes of the other out", func(in *Input) {
			living(in)
			in.Seen[1].Facts.K3s.CA = digest.Of([]byte("another"))
		}},
		{"moved", "n1: the cluster knows it as 10.0.2.99, and it has 10.0.2.15", "cannot move", func(in *Input) {
			living(in)
			in.Recorded.Nodes[0].Addresses = []string{"10.0.2.99"}
		}},
		{"no quorum", "etcd has no quorum: of its 3 voters 2 must be healthy, and 1 are", "journalctl", func(in *Input) {
			living(in)
			in.Etcd.Health[1], in.Etcd.Health[2] = member.Health{Why: "refused"}, member.Health{Why: "refused"}
		}},
		{"etcd does not answer", "no member of etcd gives an answer", "", func(in *Input) {
			living(in)
			in.Etcd, in.EtcdErr = nil, errors.New("no member of etcd gives an answer")
		}},
		{"a drop-in", "n1: /etc/rancher/k3s/config.yaml.d/90-x.yaml:1:1: the key cluster-cidr is Slipway's", "remove it", func(in *Input) {
			in.Seen[0].DropIns = map[string][]byte{"90-x.yaml": []byte("cluster-cidr: 10.42.0.0/15\n")}
			in.Seen[1].DropIns, in.Seen[2].DropIns = in.Seen[0].DropIns, in.Seen[0].DropIns
			in.Seen[1].Err, in.Seen[2].Err = errors.New("x"), errors.New("x")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := good(t)
			c.spoil(&in)
			err := Check(in)
			var all *Error
			if !errors.As(err, &all) || exit.Of(err) != exit.Refused {
				t.Fatalf("%v", err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.hint) {
				t.Errorf("%v", err)
			}
			expected := map[string]int{"all ahead of us": 3, "a drop-in": 3}[c.name]
			if len(all.Findings) != max(expected, 1) {
				t.Errorf("%d findings: %v", len(all.Findings), err)
			}
		})
	}
}

// A node ahead of the others is named with each of them; what is wrong besides is
// said as well.
func TestAllAreCollected(t *testing.T) {
	in := good(t)
	in.Seen[0].Behind, in.Seen[0].Ahead = 9*time.Second, 10*time.Second
	in.Seen[1].Facts.MachineID = "machine-3"
	in.Seen[2].Facts.Clock.Synchronised = false
	in.Seen[2].DropIns = map[string][]byte{"90-x.yaml": []byte("disable: [metrics-server]\n")}
	err := Check(in)
	for _, want := range []string{
		"the clock of n1 is 9s ahead of that of n2", "the clock of n1 is 9s ahead of that of n3", "n1: its clock is 9s ahead of ours",
		"n2 and n3 have the same machine id", "n3: its clock is not synchronised", "enables traefik, servicelb, local-storage again", "the servers' k3s configurations differ",
		"7 reasons not to begin; nothing was changed",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	var all *Error
	errors.As(err, &all)
	if text, err := json.Marshal(all.Findings); err != nil || !strings.Contains(string(text), `"node":"n3"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A network without a time server is possible, by an explicit word.
func TestWithoutTimeServer(t *testing.T) {
	in := good(t)
	for i := range in.Seen {
		in.Seen[i].Facts.Clock.Synchronised = false
	}
	in.WithoutTimeServer = true
	if err := Check(in); err != nil {
		t.Error(err)
	}
}

// asks counts who is asked.
type asks struct {
	seen  []facts.Seen
	names []string
}

func (a *asks) Ask(_ context.Context, names ...string) []facts.Seen {
	a.names = append(a.names, names...)
	return a.seen
}

func TestStep(t *testing.T) {
	in := good(t)
	survey := &asks{seen: in.Seen}
	etcd := 0
	o := Options{
		Cluster: in.Cluster, Survey: survey,
		Recorded: func(context.Context) (*identity.Cluster, error) { return in.Recorded, nil },
		Etcd:     func(_ context.Context, via string) (member.State, error) { etcd++; return *in.Etcd, nil },
	}
	s := Step(o)
	if changes, err := s.Observe(t.Context()); err != nil || len(changes) != 0 || s.Do != nil || strings.Join(survey.names, " ") != "n1 n2 n3" || etcd != 0 {
		t.Errorf("%v, %v, asked %q, etcd %d times", changes, err, survey.names, etcd)
	}
	living(&in)
	if _, err := Step(o).Observe(t.Context()); err != nil || etcd != 1 {
		t.Errorf("a living cluster: %v, etcd was asked %d times", err, etcd)
	}
	survey.names = nil
	o.Cluster.Status = cluster.StatusDesignOnly
	if _, err := Step(o).Observe(t.Context()); exit.Of(err) != exit.Refused || survey.names != nil {
		t.Errorf("a design-only profile: %v, and %q were asked", err, survey.names)
	}
}
