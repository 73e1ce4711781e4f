// Package server is the story of `k3s server`: how it comes to a cluster, and in
// which order its parts start.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway/slipway/vm-test/labk3s/internal/agent"
	"github.com/slipway/slipway/vm-test/labk3s/internal/datastore"
	"github.com/slipway/slipway/vm-test/labk3s/internal/deploy"
	"github.com/slipway/slipway/vm-test/labk3s/internal/joining"
	"github.com/slipway/slipway/vm-test/labk3s/internal/kube"
	"github.com/slipway/slipway/vm-test/labk3s/internal/nodes"
	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
	"github.com/slipway/slipway/vm-test/labk3s/internal/snapshot"
	"github.com/slipway/slipway/vm-test/labk3s/internal/supervisor"
	"github.com/slipway/slipway/vm-test/labk3s/internal/token"
)

// server is a server on its way.
type server struct {
	settings   settings.Settings
	files      pki.Files
	store      *datastore.Store
	supervisor *supervisor.Supervisor
	gate       *nodes.Gate
	group      *errgroup.Group
	ready      func() // told once the API is there
}

// Run runs a server until ctx ends or one of its parts does. The order:
//
//  1. what is shared comes from the cluster, when one is to be joined, because all
//     certificates hang on it;
//  2. certificates, passwords, kubeconfig, token files;
//  3. the supervisor listens, because a node that joins, and our own kubelet, ask it
//     before there is an API;
//  4. etcd, and a vote in it: an API server on a learner could not write;
//  5. the API server, then what needs it.
//
// The agent starts beside, after the supervisor.
func Run(ctx context.Context, s settings.Settings, ready func()) error {
	srv := &server{settings: s, files: pki.At(s.ServerDir()), ready: ready}
	var err error
	if srv.store, err = datastore.Open(s, srv.files); err != nil {
		return err
	}
	voters, err := srv.bootstrap(ctx)
	if err != nil {
		return err
	}
	if err := srv.prepare(); err != nil {
		return err
	}
	srv.group, ctx = errgroup.WithContext(ctx)
	if err := srv.listen(ctx); err != nil {
		return err
	}
	if !s.DisableAgent {
		own := s
		own.Token = srv.nodeToken()
		srv.group.Go(func() error { return agent.Run(ctx, own, func() {}) })
	}
	srv.group.Go(func() error { return srv.lead(ctx, voters) })
	defer srv.store.Close() // last: the API server ends before what it stands on
	return srv.wait(ctx)
}

// farewell is how long the parts may take to end once they are told to. The API
// server needs it to withdraw its address from the service "kubernetes".
const farewell = 3 * time.Second

// wait waits for the end of the parts, and not for ever for those that were told.
func (s *server) wait(ctx context.Context) error {
	over := make(chan error, 1)
	go func() { over <- s.group.Wait() }()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-over:
		return err
	case <-time.After(farewell):
		return context.Cause(ctx)
	}
}

// bootstrap finds out how the server comes to its cluster: it goes on with what is on
// its disk, it joins by another server, or it starts a new one. Only for joining
// there are voters.
func (s *server) bootstrap(ctx context.Context) (voters []string, err error) {
	switch {
	case s.store.Initialized():
		slog.Info("Managed etcd cluster bootstrap already complete and initialized")
		return nil, nil
	case s.settings.Join == "" && !s.settings.ClusterInit:
		return nil, errors.New("labk3s has no datastore but etcd: set cluster-init to start a cluster, or server to join one")
	case s.settings.Join == "":
		slog.Info("Managed etcd cluster initializing")
		return nil, nil
	case s.settings.Token == "":
		return nil, errors.New("K3S_TOKEN is required to join a cluster")
	}
	slog.Info("Managed etcd cluster not yet initialized", "server", s.settings.Join)
	other, err := joining.Meet(ctx, s.settings.Join, s.settings.Token, token.Server)
	if err != nil {
		return nil, err
	}
	if err := other.Compare(ctx, joining.CriticalOf(s.settings)); err != nil {
		return nil, fmt.Errorf("failed to validate server configuration: %w", err)
	}
	doc, err := other.Get(ctx, "/v1-k3s/server-bootstrap")
	if err != nil {
		return nil, err
	}
	if err := s.files.Import(doc); err != nil {
		return nil, err
	}
	return datastore.Voters(ctx, other, s.settings.NodeIP)
}

func (s *server) listen(ctx context.Context) error {
	s.gate = nodes.NewGate(s.settings.NodeName, s.settings.PasswordDir)
	var err error
	s.supervisor, err = supervisor.New(s.files, joining.CriticalOf(s.settings), s.store, s.gate)
	if err != nil {
		return err
	}
	l, err := supervisor.Listen(net.JoinHostPort(s.settings.BindAddress, strconv.Itoa(s.settings.Port)), s.files.APIServing())
	if err != nil {
		return err
	}
	s.group.Go(func() error { return supervisor.Serve(ctx, l, s.supervisor) })
	return nil
}

// lead starts etcd and what stands on it.
func (s *server) lead(ctx context.Context, voters []string) error {
	if err := s.store.Start(ctx, voters); err != nil {
		return err
	}
	s.group.Go(func() error { return s.store.Wait(ctx) })
	s.group.Go(func() error { s.store.Tend(ctx); return nil })
	if s.settings.ClusterReset {
		return ErrReset
	}
	if err := s.store.AwaitVote(ctx); err != nil {
		return err
	}
	api, err := kube.NewAPIServer(ctx, s.settings, s.files)
	if err != nil {
		return err
	}
	s.group.Go(func() error { return api.Run(ctx) })
	config, err := clientcmd.BuildConfigFromFlags("", s.files.Kubeconfig("supervisor"))
	if err != nil {
		return err
	}
	if err := awaitAPI(ctx, config); err != nil {
		return err
	}
	s.supervisor.SetAPI(api.Handler)
	slog.Info("k3s is up and running")
	s.ready()
	return s.attend(ctx, config)
}

// ErrReset ends a server that was only started to forget the others, and has.
var ErrReset = errors.New("etcd has forgotten all other members: restart without --cluster-reset now, and delete server/db on each of the others before they join again")

// attend starts what needs the API.
func (s *server) attend(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	s.group.Go(kube.Unstoppable(ctx, func(ctx context.Context) error { return kube.ControllerManager(ctx, s.settings, s.files) }))
	if !s.settings.DisableScheduler {
		s.group.Go(kube.Unstoppable(ctx, func(ctx context.Context) error { return kube.Scheduler(ctx, s.settings, s.files) }))
	}
	s.group.Go(func() error { s.gate.Open(ctx, client); return nil })
	keeper := nodes.Keeper{Client: client, Members: s.store, Own: nodes.Own{Node: s.settings.NodeName, Member: s.store.Name(), Address: s.store.Address()}}
	s.group.Go(func() error { return keeper.Run(ctx) })
	manifests := s.settings.ServerDir("manifests")
	if err := deploy.Stage(manifests, s.settings); err != nil {
		return err
	}
	deployer, err := deploy.New(manifests, config)
	if err != nil {
		return err
	}
	s.group.Go(func() error { deployer.Run(ctx); return nil })
	if s.settings.DisableSnapshots {
		return nil
	}
	dir := snapshot.Dir{Path: s.settings.SnapshotDir, Node: s.settings.NodeName, Compress: s.settings.SnapshotCompress}
	return dir.ByTheClock(ctx, s.store.Client(), s.settings.SnapshotCron, s.settings.SnapshotName, s.settings.SnapshotRetention,
		func(f snapshot.File, err error) { slog.Info("etcd snapshot", "name", f.Name, "err", err) })
}

// awaitAPI waits until the API server says that it is ready.
func awaitAPI(ctx context.Context, config *rest.Config) error {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	for {
		err := probe(ctx, c, config.Host+"/readyz")
		if err == nil {
			return nil
		}
		slog.Debug("Waiting for API server to become available", "err", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func probe(ctx context.Context, c *http.Client, url string) error {
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
		return errors.New(answer.Status)
	}
	return nil
}
