package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/vm-test/controlplane"
)

// servers are the nodes n1, n2, … of a plane, one for each of its first members.
func servers(t *testing.T, p *controlplane.Plane, n int) []member.Server {
	t.Helper()
	var out []member.Server
	for _, m := range p.Members()[:n] {
		u, err := url.Parse(m.PeerURL)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(m.Name, "-")
		out = append(out, member.Server{Name: name, Addresses: []string{u.Hostname()}})
	}
	return out
}

func connect(t *testing.T, p *controlplane.Plane) *Client {
	t.Helper()
	c := New(Config{Endpoints: p.EtcdEndpoints(), TLS: p.EtcdTLS()})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func see(t *testing.T, c *Client) member.State {
	t.Helper()
	s, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// await waits for the members to be as they should: an election takes its time.
func await(t *testing.T, c *Client, what string, ok func(member.State) bool) member.State {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		s, err := c.State(t.Context())
		if err == nil && ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %+v, %v", what, s, err)
		}
	}
}

func healthy(n int) func(member.State) bool {
	return func(s member.State) bool {
		good, leaders := 0, 0
		for _, h := range s.Health {
			if h.Healthy {
				good++
			}
			if h.Leader {
				leaders++
			}
		}
		return good == n && leaders == 1 && !s.Stale
	}
}

// The pitfall of a lost node: exactly its member goes, and the orphan learner before it.
func TestLostMember(t *testing.T) {
	p := controlplane.Start(t, controlplane.Options{Etcd: 3})
	c, nodes := connect(t, p), servers(t, p, 3)
	s := await(t, c, "three healthy voters", healthy(3))
	if len(s.Voters()) != 3 || len(s.Learners()) != 0 || s.Cluster == 0 {
		t.Fatalf("%+v", s)
	}
	orphan := p.JoinEtcd(true)
	await(t, c, "a learner", func(s member.State) bool { return len(s.Learners()) == 1 && healthy(4)(s) })
	p.Kill(orphan)
	p.Kill(0)
	s = await(t, c, "two healthy voters", healthy(2))
	removal, err := member.Remove(s, nodes, "n1")
	if err != nil || removal.Voter == nil || removal.Voter.Name != p.Members()[0].Name || len(removal.Learners) != 1 || removal.Learners[0].Name != p.Members()[orphan].Name {
		t.Fatalf("%+v, %v", removal, err)
	}
	if _, err := member.Remove(s, nodes, "n2"); err == nil || !strings.Contains(err.Error(), "quorum would be lost") {
		t.Errorf("n2, while n1 is dead: %v", err)
	}
	for range 2 { // the second time is that of a run that was killed in between
		for _, m := range append(removal.Learners, *removal.Voter) {
			if err := c.Remove(t.Context(), m.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	s = see(t, c)
	if err := member.MayJoin(s, nodes, "n1"); err != nil {
		t.Errorf("after the removal: %v", err)
	}
	var left []string
	for _, m := range s.Members {
		left = append(left, m.Name)
	}
	slices.Sort(left)
	if want := []string{p.Members()[1].Name, p.Members()[2].Name}; !slices.Equal(left, want) {
		t.Errorf("left are %q, not %q", left, want)
	}
	joined := p.JoinEtcd(false)
	s = await(t, c, "three voters again", healthy(3))
	server := member.Server{Name: "n4", Addresses: []string{host(t, p.Members()[joined].PeerURL)}}
	if done, words := member.Joined(s, server); !done {
		t.Error(words)
	}
}

func host(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Hostname()
}

func TestNoQuorum(t *testing.T) {
	p := controlplane.Start(t, controlplane.Options{Etcd: 3})
	c, nodes := connect(t, p), servers(t, p, 3)
	await(t, c, "three healthy voters", healthy(3))
	p.Kill(0)
	p.Kill(1)
	s := await(t, c, "a list that nobody vouches for", func(s member.State) bool { return s.Stale })
	_, err := member.Remove(s, nodes, "n1")
	if err == nil || !strings.Contains(err.Error(), "of its 3 voters 2 have to agree, but only n3 answers; ") || exit.Of(err) != exit.Refused {
		t.Errorf("%v", err)
	}
	for _, m := range s.Members {
		if h := s.Health[m.ID]; h.Healthy || h.Why == "" {
			t.Errorf("%s: %+v", m.Name, h)
		}
	}
	if err := c.Remove(t.Context(), s.Members[0].ID); err == nil {
		t.Error("a member was removed without a quorum")
	}
	if _, err := c.Snapshot(t.Context(), t.TempDir()+"/s.db", func(int64) {}); err == nil {
		t.Error("a snapshot was taken without a quorum")
	}
	p.RestartAlone(1)
	await(t, c, "two healthy voters", healthy(2))
}

// Where a connection leads is the caller's to say.
func TestDial(t *testing.T) {
	p := controlplane.Start(t, controlplane.Options{})
	var dialled atomic.Int32
	want := p.EtcdEndpoints()[0][len("https://"):]
	c := New(Config{Endpoints: p.EtcdEndpoints(), TLS: fromFiles(t, p), Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		if address != want {
			return nil, errors.New("asked for " + address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
	defer c.Close()
	await(t, c, "one healthy voter", healthy(1))
	if dialled.Load() == 0 {
		t.Error("nobody dialled")
	}
	broken := New(Config{Endpoints: []string{"https://127.0.0.1:1"}, TLS: p.EtcdTLS(), Patience: time.Second})
	defer broken.Close()
	if _, err := broken.State(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := New(Config{}).State(t.Context()); err == nil {
		t.Error("nobody to ask is no error")
	}
}

// fromFiles reads what a client needs as it lies on a server.
func fromFiles(t *testing.T, p *controlplane.Plane) *tls.Config {
	t.Helper()
	var contents [][]byte
	ca, cert, key := p.EtcdFiles()
	for _, path := range []string{ca, cert, key} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, text)
	}
	config, err := TLS(contents[0], contents[1], contents[2])
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][3][]byte{{nil, contents[1], contents[2]}, {contents[0], contents[2], contents[2]}, {contents[0], contents[1], nil}} {
		if _, err := TLS(bad[0], bad[1], bad[2]); err == nil || strings.Contains(err.Error(), "PRIVATE KEY-") {
			t.Errorf("%v", err)
		}
	}
	return config
}
