package start

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
)

func ca(name string) digest.Digest { return digest.Of([]byte(name)) }

// What a server can be like.
func blank(n string) facts.Seen {
	return facts.Seen{Node: n, Facts: facts.Facts{Node: n, K3s: facts.K3s{State: "inactive"}}}
}

func silent(n string) facts.Seen { return facts.Seen{Node: n, Err: errors.New("no route to host")} }

func with(s facts.Seen, change func(*facts.K3s)) facts.Seen {
	change(&s.Facts.K3s)
	return s
}

func member(n, cluster, state string) facts.Seen {
	return with(blank(n), func(k *facts.K3s) {
		k.Config, k.Etcd, k.CA, k.TokenCA, k.State = true, true, ca(cluster), "hash of "+cluster, state
	})
}

func told(n, state string) facts.Seen {
	return with(blank(n), func(k *facts.K3s) { k.Config, k.Init, k.State = true, true, state })
}

func TestDecide(t *testing.T) {
	recorded := &identity.Cluster{Environment: "lab", Name: "harbor", CA: ca("one"), UID: "u", Seen: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)}
	for _, c := range []struct {
		name     string
		recorded *identity.Cluster
		servers  []facts.Seen
		init     string
		via      []string
		refusal  string
		hint     string
	}{
		{name: "three blank servers, nobody knows a cluster", servers: []facts.Seen{blank("n1"), blank("n2"), blank("n3")}, init: "n1"},
		{name: "one server", servers: []facts.Seen{blank("n1")}, init: "n1"},
		{name: "the wiped first one joins", recorded: recorded, servers: []facts.Seen{blank("n1"), member("n2", "one", "active"), member("n3", "one", "active")}, via: []string{"n2", "n3"}},
		{name: "the wiped first one joins, without a ledger", servers: []facts.Seen{blank("n1"), member("n2", "one", "active"), member("n3", "one", "active")}, via: []string{"n2", "n3"}},
		{name: "converged", recorded: recorded, servers: []facts.Seen{member("n1", "one", "active"), member("n2", "one", "active"), member("n3", "one", "active")}, via: []string{"n1", "n2", "n3"}},
		{name: "all wiped", recorded: recorded, servers: []facts.Seen{blank("n1"), blank("n2"), blank("n3")}, refusal: "the ledger knows cluster harbor", hint: "--forget"},
		{name: "one silent, the others blank", servers: []facts.Seen{blank("n1"), blank("n2"), silent("n3")}, refusal: "n3 does not answer (no route to host)"},
		{name: "the first silent", servers: []facts.Seen{silent("n1"), blank("n2")}, refusal: "n1 does not answer"},
		{name: "all silent", recorded: recorded, servers: []facts.Seen{silent("n1"), silent("n2")}, refusal: "does not answer"},
		{name: "one dead of three", recorded: recorded, servers: []facts.Seen{silent("n1"), member("n2", "one", "active"), member("n3", "one", "active")}, via: []string{"n2", "n3"}},
		{name: "a member is stopped", recorded: recorded, servers: []facts.Seen{member("n1", "one", "inactive"), member("n2", "one", "active"), member("n3", "one", "active")}, via: []string{"n2", "n3"}},
		{name: "all members are stopped", recorded: recorded, servers: []facts.Seen{member("n1", "one", "failed"), member("n2", "one", "inactive")}, refusal: "no server serves it", hint: "systemctl start k3s"},
		{name: "cut off: told, never started", servers: []facts.Seen{blank("n1"), told("n2", "inactive"), blank("n3")}, init: "n2"},
		{name: "cut off: told and starting", servers: []facts.Seen{blank("n1"), told("n2", "activating"), blank("n3")}, init: "n2"},
		{name: "cut off: on its way", servers: []facts.Seen{member("n1", "one", "activating"), blank("n2"), blank("n3")}, via: []string{"n1"}},
		{name: "two were told", servers: []facts.Seen{told("n1", "inactive"), told("n2", "inactive")}, refusal: "n1, n2 are told to start a cluster each", hint: "rm /etc/rancher"},
		{name: "told long ago, and there is a cluster", servers: []facts.Seen{told("n1", "inactive"), member("n2", "one", "active")}, via: []string{"n2"}},
		{name: "a second cluster is starting", servers: []facts.Seen{told("n1", "activating"), member("n2", "one", "active")}, refusal: "n1 is starting a cluster of its own", hint: "systemctl stop k3s"},
		{name: "two clusters", servers: []facts.Seen{member("n1", "one", "active"), member("n2", "two", "active")}, refusal: "serve different clusters"},
		{name: "a foreign cluster", recorded: recorded, servers: []facts.Seen{member("n1", "two", "active")}, refusal: "is not the one that the ledger knows"},
		{name: "a cluster without etcd", servers: []facts.Seen{with(blank("n1"), func(k *facts.K3s) { k.SQLite = true })}, refusal: "kept without etcd"},
		{name: "no server", refusal: "the profile has no server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Decide(c.recorded, c.servers)
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) || !strings.Contains(diag.HintOf(err), c.hint) || d.Init != "" {
					t.Errorf("%+v, %v (hint %q)", d, err, diag.HintOf(err))
				}
				if len(c.servers) > 0 && exit.Of(err) != exit.Refused {
					t.Errorf("exit code %d", exit.Of(err))
				}
				return
			}
			if err != nil || d.Init != c.init || !slices.Equal(d.Via, c.via) {
				t.Errorf("%+v, %v", d, err)
			}
			if len(d.Via) > 0 && (d.CA != ca("one") || d.TokenCA != "hash of one") {
				t.Errorf("CA %s, token %q", d.CA.Short(), d.TokenCA)
			}
		})
	}
}

func TestThrough(t *testing.T) {
	for _, c := range []struct {
		d          Decision
		node, want string
	}{
		{Decision{Via: []string{"n1", "n2"}}, "n1", "n2"},
		{Decision{Via: []string{"n1", "n2"}}, "n3", "n1"},
		{Decision{Via: []string{"n1"}}, "n1", ""},
		{Decision{Init: "n1"}, "n2", "n1"},
		{Decision{Init: "n1"}, "n1", ""},
	} {
		if got := c.d.Through(c.node); got != c.want {
			t.Errorf("%+v, %s: %q, want %q", c.d, c.node, got, c.want)
		}
	}
}

func TestAnswers(t *testing.T) {
	k := func(etcd bool, state string) facts.Seen {
		return facts.Seen{Facts: facts.Facts{K3s: facts.K3s{Etcd: etcd, State: state}}}
	}
	for _, c := range []struct {
		name    string
		servers []facts.Seen
		want    []identity.Standing
	}{
		{"fresh", []facts.Seen{k(false, "inactive"), {Err: errors.New("no")}}, []identity.Standing{identity.Blank, identity.Silent}},
		{"living", []facts.Seen{k(true, "active"), k(true, "activating"), k(true, "failed")}, []identity.Standing{identity.Serving, identity.Stopped, identity.Stopped}},
		{"cut off", []facts.Seen{k(true, "activating"), k(false, "inactive")}, []identity.Standing{identity.Serving, identity.Blank}},
		{"all down", []facts.Seen{k(true, "inactive"), k(true, "failed")}, []identity.Standing{identity.Stopped, identity.Stopped}},
	} {
		for i, a := range answers(c.servers) {
			if a.Standing != c.want[i] {
				t.Errorf("%s: %d is %s", c.name, i, a.Standing)
			}
		}
	}
}
