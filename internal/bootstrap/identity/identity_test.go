package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
)

func ca(name string) digest.Digest { return digest.Of([]byte(name)) }

func seen() Cluster {
	return Cluster{
		Environment: "lab", Name: "harbor", CA: ca("one"), UID: "u-1", Etcd: "e-1", Seen: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC),
		Members:  []member.Member{{ID: 1, Name: "n1-a", PeerURLs: []string{"https://10.0.2.15:2380"}}, {ID: 2, Name: "n2-b"}},
		Nodes:    []Node{{Name: "n1", UID: "x1", MachineID: "m1", HostKeys: []string{"k1"}, InstanceID: "i1", RootHash: "r1"}, {Name: "n2", UID: "x2"}},
		Releases: []Release{{"kube-system", "cilium", 3, "deployed"}}, Flux: &Flux{"ssh://git@h/r", "main@sha1:abc"},
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(recorded, seen *Cluster)
		want   string
	}{
		{"the same", func(*Cluster, *Cluster) {}, ""},
		{"a rotated CA", func(_, s *Cluster) { s.CA = ca("two") }, ""},
		{"no UID", func(r, s *Cluster) { r.UID, s.UID = "", "" }, ""},
		{"another CA", func(_, s *Cluster) { s.CA, s.UID = ca("two"), "" }, "its CA is " + ca("two").Short() + ", recorded is " + ca("one").Short()},
		{"another cluster", func(_, s *Cluster) { s.CA, s.UID = ca("two"), "u-2" }, "is not the one that the ledger knows"},
		{"another cluster with the same CA", func(_, s *Cluster) { s.UID = "u-2" }, "its kube-system was made as u-2"},
		{"another environment", func(_, s *Cluster) { s.Environment = "prod" }, "about environment lab, the profile about prod"},
		{"nothing seen", func(_, s *Cluster) { s.CA = digest.Digest{} }, "no CA was seen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			recorded, now := seen(), seen()
			c.change(&recorded, &now)
			err := Same(recorded, now)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %q", err, c.want)
			}
			if c.name != "nothing seen" && (exit.Of(err) != exit.Refused || !strings.Contains(diag.HintOf(err), "--forget "+ca("one").Short())) {
				t.Errorf("exit code %d, hint %q", exit.Of(err), diag.HintOf(err))
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Cluster)
		want   []string
	}{
		"nothing":             {func(*Cluster) {}, nil},
		"a later look":        {func(c *Cluster) { c.Seen = c.Seen.Add(time.Hour) }, nil},
		"less was seen":       {func(c *Cluster) { c.Members, c.Etcd, c.UID, c.Nodes[0].HostKeys = nil, "", "", nil }, nil},
		"members without IDs": {func(c *Cluster) { c.Members = []member.Member{{Name: "n1-a"}, {Name: "n2-b"}} }, nil},
		"a member less":       {func(c *Cluster) { c.Members = c.Members[1:] }, []string{"members of etcd"}},
		"a rebuilt node":      {func(c *Cluster) { c.Nodes[0].UID, c.Nodes[0].MachineID = "x9", "m9" }, []string{"node n1"}},
		"a new node":          {func(c *Cluster) { c.Nodes = append(c.Nodes, Node{Name: "n3"}) }, []string{"node n3"}},
		"a node less":         {func(c *Cluster) { c.Nodes = c.Nodes[:1] }, []string{"node n2"}},
		"an upgrade":          {func(c *Cluster) { c.Releases = []Release{{"kube-system", "cilium", 4, "deployed"}} }, []string{"Helm releases"}},
		"a commit":            {func(c *Cluster) { c.Flux = &Flux{"ssh://git@h/r", "main@sha1:def"} }, []string{"Flux"}},
		"no Flux any more":    {func(c *Cluster) { c.Flux = nil }, []string{"Flux"}},
		"a rotated CA":        {func(c *Cluster) { c.CA = ca("two") }, []string{"CA"}},
		"a restored snapshot": {func(c *Cluster) { c.Etcd = "e-2" }, []string{"etcd's cluster ID"}},
	} {
		now := seen()
		c.change(&now)
		var got []string
		for _, d := range Differences(seen(), now) {
			got = append(got, d.What)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
		// What is merged has no difference to what was seen.
		if left := Differences(Merged(seen(), now), now); len(left) > 0 {
			t.Errorf("%s: after merging: %v", name, left)
		}
	}
	if all := Differences(Cluster{}, seen()); len(all) != 8 {
		t.Errorf("an empty record: %v", all)
	}
	// A machine that was installed again has nothing of the one before.
	now := seen()
	now.Nodes[0] = Node{Name: "n1", MachineID: "m9"}
	if n := Merged(seen(), now).Nodes[0]; n.InstanceID != "" || n.HostKeys != nil {
		t.Errorf("%+v", n)
	}
}

func TestJudge(t *testing.T) {
	recorded := seen()
	at := func(n string, s Standing) Answer { return Answer{Node: n, Standing: s} }
	serve := func(n, name string) Answer { return Answer{Node: n, Standing: Serving, CA: ca(name)} }
	for _, c := range []struct {
		name     string
		recorded *Cluster
		answers  []Answer
		init     bool
		join     string
		refusal  string
	}{
		{name: "nobody knows a cluster", answers: []Answer{at("n1", Blank), at("n2", Blank), at("n3", Blank)}, init: true},
		{name: "a wiped first node", recorded: &recorded, answers: []Answer{at("n1", Blank), serve("n2", "one"), serve("n3", "one")}, join: "n2 n3"},
		{name: "a wiped first node and an empty ledger", answers: []Answer{at("n1", Blank), serve("n2", "one"), serve("n3", "one")}, join: "n2 n3"},
		{name: "a living cluster and an empty ledger", answers: []Answer{serve("n1", "one"), serve("n2", "one"), at("n3", Silent)}, join: "n1 n2"},
		{name: "all are wiped", recorded: &recorded, answers: []Answer{at("n1", Blank), at("n2", Blank), at("n3", Blank)}, refusal: "the ledger knows cluster harbor (CA " + ca("one").Short() + ", seen 2026-05-01 10:00), but all of its servers are blank"},
		{name: "one does not answer", answers: []Answer{at("n1", Blank), at("n2", Blank), {Node: "n3", Standing: Silent, Why: "no route to host"}}, refusal: "n3 does not answer (no route to host)"},
		{name: "nobody answers", recorded: &recorded, answers: []Answer{at("n1", Silent), at("n2", Silent)}, refusal: "n1 does not answer; n2 does not answer"},
		{name: "data that nobody serves", answers: []Answer{at("n1", Blank), at("n2", Stopped), at("n3", Stopped)}, refusal: "n2, n3 hold data of a cluster, and no server serves it"},
		{name: "the rest of a cluster", recorded: &recorded, answers: []Answer{at("n1", Blank), at("n2", Stopped)}, refusal: "n2 holds data of a cluster"},
		{name: "two clusters", answers: []Answer{serve("n1", "one"), serve("n2", "two")}, refusal: "the servers serve different clusters: n1 has CA " + ca("one").Short() + ", n2 has CA " + ca("two").Short()},
		{name: "another cluster", recorded: &recorded, answers: []Answer{serve("n1", "two")}, refusal: "is not the one that the ledger knows"},
		{name: "no servers", refusal: "the profile has no server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Judge(c.recorded, c.answers)
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) || got.Init {
					t.Errorf("%+v, %v, not %q", got, err, c.refusal)
				}
				return
			}
			if err != nil || got.Init != c.init || strings.Join(got.Join, " ") != c.join {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestDrift(t *testing.T) {
	nodes := []Node{{Name: "n1", InstanceID: "lab-n1-aaaa", RootHash: "r1", K3s: "v1"}, {Name: "n2"}}
	if got := Drift([]Wanted{{"n1", "lab-n1-aaaa", "r1", "v1"}, {"n2", "lab-n2", "r1", "v1"}, {"n3", "lab-n3", "r1", "v1"}}, nodes); len(got) != 0 {
		t.Errorf("%v", got)
	}
	got := Drift([]Wanted{{"n1", "lab-n1-bbbb", "r2", "v1"}}, nodes)
	if len(got) != 2 || got[0].Why != "seed drift: it has lab-n1-aaaa, an install would give lab-n1-bbbb" || got[1].Why != "image drift: it has r1, an install would give r2" {
		t.Errorf("%v", got)
	}
}

func TestCAOf(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, public, private)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if got, err := CAOf(append(text, text...)); err != nil || got != digest.Of(der) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "garbage", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der[1:]}))} {
		if _, err := CAOf([]byte(bad)); err == nil {
			t.Errorf("%.20q is a CA", bad)
		}
	}
}
