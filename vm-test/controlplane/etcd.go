package controlplane

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// Member is an etcd member of the plane.
type Member struct {
	Name      string // as k3s names them: the node's name and a suffix, "n1-1f0c9a3e"
	ClientURL string
	PeerURL   string
}

type member struct {
	Member
	args []string
	run  *process
}

// Members are the members that the plane has started, in their order.
func (p *Plane) Members() []Member {
	var out []Member
	for _, m := range p.members {
		out = append(out, m.Member)
	}
	return out
}

// EtcdEndpoints are the client URLs of all members, dead ones too.
func (p *Plane) EtcdEndpoints() []string {
	var out []string
	for _, m := range p.members {
		out = append(out, m.ClientURL)
	}
	return out
}

// EtcdTLS is what a client of etcd needs.
func (p *Plane) EtcdTLS() *tls.Config {
	return &tls.Config{
		RootCAs:      p.etcdCA.pool(),
		Certificates: []tls.Certificate{p.etcdCA.issue(p.t, identity{name: "etcd-client"}).pair(p.t)},
	}
}

// EtcdFiles are the paths of the same in files.
func (p *Plane) EtcdFiles() (ca, cert, key string) {
	return p.path("etcd-ca.crt"), p.path("etcd-client.crt"), p.path("etcd-client.key")
}

// Kill ends a member without a word, as a loss of power would.
func (p *Plane) Kill(i int) { p.members[i].run.kill() }

// Restart starts a member that was killed again, on its data, and returns when it
// serves. Without a quorum of others it never does; see RestartAlone.
func (p *Plane) Restart(i int) {
	p.t.Helper()
	p.RestartAlone(i)
	p.awaitMember(p.members[i])
}

// RestartAlone starts a member again and does not wait for it.
func (p *Plane) RestartAlone(i int) {
	p.t.Helper()
	m := p.members[i]
	m.run.kill()
	m.run = p.start(m.Name, "etcd", m.args...)
}

// Wipe kills a member and removes its data: the node's disk is gone.
func (p *Plane) Wipe(i int) {
	p.t.Helper()
	p.Kill(i)
	if err := os.RemoveAll(p.path(p.members[i].Name)); err != nil {
		p.t.Fatal(err)
	}
}

// JoinEtcd adds a member to the running cluster and returns its place in Members,
// at once for a learner, and when it votes otherwise. The API server goes on with
// the members that it was started with.
func (p *Plane) JoinEtcd(learner bool) int {
	p.t.Helper()
	m := p.newMember(len(p.members))
	m.args = append(m.args, "--join", p.living())
	if !learner {
		m.args = append(m.args, "--promote")
	}
	p.members = append(p.members, m)
	m.run = p.start(m.Name, "etcd", m.args...)
	if !learner {
		p.awaitMember(m)
		return len(p.members) - 1
	}
	p.until("etcd learner "+m.Name, m.run.alive, func(ctx context.Context) error {
		return p.memberAnswers(ctx, m, "/livez")
	})
	return len(p.members) - 1
}

// living is the client URL of a member that runs.
func (p *Plane) living() string {
	for _, m := range p.members {
		if m.run.alive() == nil {
			return m.ClientURL
		}
	}
	p.t.Fatal("no member of etcd runs")
	return ""
}

func (p *Plane) startEtcd(n int) {
	p.t.Helper()
	var all []string
	for i := range n {
		m := p.newMember(i)
		p.members = append(p.members, m)
		all = append(all, m.Name+"="+m.PeerURL)
	}
	for _, m := range p.members {
		m.args = append(m.args, "--initial-cluster", strings.Join(all, ","))
		m.run = p.start(m.Name, "etcd", m.args...)
	}
	for _, m := range p.members {
		p.awaitMember(m)
	}
}

func (p *Plane) newMember(i int) *member {
	ip := fmt.Sprintf("%s.%d", p.net, i+1)
	m := &member{Member: Member{
		Name:      fmt.Sprintf("n%d-%s", i+1, strings.ToLower(rand.Text()[:8])),
		ClientURL: "https://" + ip + ":2379",
		PeerURL:   "https://" + ip + ":2380",
	}}
	pair := p.etcdCA.issue(p.t, identity{name: m.Name, ips: []string{ip, "127.0.0.1"}})
	cert, key := pair.write(p.t, p.path(m.Name))
	ca := p.path("etcd-ca.crt")
	m.args = []string{"--name", m.Name, "--data-dir", p.path(m.Name), "--unsafe-no-fsync",
		"--client-url", m.ClientURL, "--client-ca", ca, "--client-cert", cert, "--client-key", key,
		"--peer-url", m.PeerURL, "--peer-ca", ca, "--peer-cert", cert, "--peer-key", key}
	return m
}

func (p *Plane) awaitMember(m *member) {
	p.t.Helper()
	p.until("etcd member "+m.Name, m.run.alive, func(ctx context.Context) error {
		return p.memberAnswers(ctx, m, "/readyz")
	})
}

func (p *Plane) memberAnswers(ctx context.Context, m *member, path string) error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: p.EtcdTLS(), DisableKeepAlives: true}}
	return get(ctx, client, m.ClientURL+path)
}

func get(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := c.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return nil
}
