package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/slipway/slipway/internal/bootstrap/book"
	"github.com/slipway/slipway/internal/bootstrap/chart"
	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/bootstrap/ssh"
	"github.com/slipway/slipway/internal/bootstrap/survey"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/secrets"
	"github.com/slipway/slipway/internal/sequence"
)

// Names of files in the state directory.
const (
	kubeconfigName = "kubeconfig"
	lockName       = "run.lock"
	snapshotsName  = "snapshots"
)

// Session holds the drivers of one command. They connect when they are first used.
type Session struct {
	material.Settings
	Redactor  *secrets.Redactor
	survey    *survey.Survey
	login     *ssh.Login
	addresses map[string]string // host:port by node
	noTime    bool
	record    Record

	mu sync.Mutex // over what is opened when it is needed

	hostsMu sync.Mutex // its own: opening the API asks nodes
	hosts   map[string]connected
	kube    *kube.Client
	ledger  *book.Book
}

// Login is how the nodes are logged in to.
type Login struct {
	Files     []string          // private keys; none means the usual ones and the agent
	Addresses map[string]string // host[:port] of nodes that are not reached at the profile's, by name
	// WithoutTimeServer lets clocks be that no time server keeps.
	WithoutTimeServer bool
}

// Start makes the drivers; nothing is sent yet.
func Start(s material.Settings, l Login, r Record) (*Session, error) {
	out := &Session{
		Settings: s, Redactor: &secrets.Redactor{}, record: r, noTime: l.WithoutTimeServer,
		addresses: map[string]string{}, hosts: map[string]connected{},
	}
	var err error
	if out.login, err = ssh.Open(s.Getenv("SSH_AUTH_SOCK"), l.Files, ssh.DefaultFiles(s.Home)); err != nil {
		return nil, err
	}
	nodes := map[string]survey.Node{}
	for _, n := range s.Cluster.Nodes {
		out.addresses[n.Name] = address(n, l)
		nodes[n.Name] = remote{out, n}
	}
	out.survey = survey.New(nodes, s.Now)
	return out, nil
}

// Close ends all connections.
func (s *Session) Close() error {
	var errs []error
	for _, h := range s.hosts {
		errs = append(errs, h.Close())
	}
	if s.ledger != nil {
		errs = append(errs, s.ledger.Close())
	}
	return errors.Join(errs...)
}

// sshPort is where sshd of a node listens.
const sshPort = 22

// address is where a node is reached: what was said, else the first address of the
// profile.
func address(n cluster.Node, l Login) string {
	host := l.Addresses[n.Name]
	for _, i := range n.Interfaces {
		if host == "" && len(i.Addresses) > 0 {
			host = i.Addresses[0].Addr().String()
		}
	}
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(sshPort))
}

// open gives the client of the API server: by the kubeconfig in the state directory,
// or by that of a server, through it. A state directory that was lost must not make a
// living cluster look as if there were none. Without either it is sequence.ErrUnseen.
func (s *Session) open(ctx context.Context) (*kube.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kube != nil {
		return s.kube, nil
	}
	path := filepath.Join(s.State, kubeconfigName)
	data, err := os.ReadFile(path)
	var dial kube.Dialer
	if material.Missing(err) {
		path = k3sconf.KubeconfigPath
		data, dial, err = s.serving(ctx)
	}
	if err != nil {
		return nil, err
	}
	c, err := kube.New(data, dial)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if dial == nil {
		s.kube = c // the other one gives way to the file as soon as there is one
	}
	return c, nil
}

// serving is the kubeconfig of the first server on which k3s runs, with the way to it.
func (s *Session) serving(ctx context.Context) ([]byte, kube.Dialer, error) {
	for _, seen := range s.survey.Ask(ctx, s.servers()...) {
		if seen.Err != nil || seen.Facts.K3s.State != "active" {
			continue
		}
		data, err := s.node(seen.Node).Get(ctx, k3sconf.KubeconfigPath)
		if material.Missing(err) {
			continue
		}
		return data, s.node(seen.Node).Dial, err
	}
	return nil, nil, sequence.ErrUnseen
}

// servers are the names of the servers.
func (s *Session) servers() []string {
	var out []string
	for _, n := range s.Cluster.Servers() {
		out = append(out, n.Name)
	}
	return out
}

// running are the values of the releases that run, by name.
func (s *Session) running(ctx context.Context, p *material.Payload) (map[string]map[string]any, error) {
	k, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]any{}
	for _, r := range p.Releases(s.Cluster) {
		is, err := (chart.Client{Kube: k}).Status(ctx, r.Name, r.Namespace)
		if err != nil {
			return nil, err
		}
		if !is.Found {
			return nil, diag.WithHint(fmt.Errorf("the cluster has no release %s", r), "bootstrap up installs it; --offline compares with the profile")
		}
		out[r.Name] = is.Values
	}
	return out, nil
}
