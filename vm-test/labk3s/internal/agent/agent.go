// Package agent is what every node runs for the cluster: containerd and the kubelet,
// with what a server gives them.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/vm-test/labk3s/internal/balancer"
	"github.com/slipway/slipway/vm-test/labk3s/internal/cri"
	"github.com/slipway/slipway/vm-test/labk3s/internal/joining"
	"github.com/slipway/slipway/vm-test/labk3s/internal/kube"
	"github.com/slipway/slipway/vm-test/labk3s/internal/nodepassword"
	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
	"github.com/slipway/slipway/vm-test/labk3s/internal/token"
)

// pause is the time between two tries to get something from a server.
const pause = 2 * time.Second

// Run runs the node's part until ctx ends or something does. For a server, the
// supervisor is its own; an agent reaches the servers through a port of its own.
func Run(ctx context.Context, s settings.Settings, ready func()) error {
	group, ctx := errgroup.WithContext(ctx)
	supervisor := "https://127.0.0.1:" + strconv.Itoa(s.Port)
	if s.Role == settings.Agent {
		port := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.BalancerPort))
		supervisor = "https://" + port
		b, err := listen(port, s.Join)
		if err != nil {
			return err
		}
		group.Go(func() error { return b.Serve(ctx) })
		group.Go(func() error { return follow(ctx, s, supervisor, b) })
	}
	group.Go(func() error { return run(ctx, s, supervisor, ready) })
	return group.Wait()
}

func listen(address, server string) (*balancer.Balancer, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of a server", server)
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "443")
	}
	return balancer.Listen(address, host)
}

// follow tells the balancer which servers there are.
func follow(ctx context.Context, s settings.Settings, supervisor string, b *balancer.Balancer) error {
	for {
		if list, err := servers(ctx, s, supervisor); err == nil {
			b.Set(list)
		} else {
			slog.Debug("asking for the servers", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * pause):
		}
	}
}

func servers(ctx context.Context, s settings.Settings, supervisor string) ([]string, error) {
	server, err := joining.Meet(ctx, supervisor, s.Token, token.Node)
	if err != nil {
		return nil, err
	}
	doc, err := server.Get(ctx, "/v1-k3s/apiservers")
	if err != nil {
		return nil, err
	}
	var list []string
	return list, json.Unmarshal(doc, &list)
}

// run waits for a server, prepares the node, and runs containerd and the kubelet.
func run(ctx context.Context, s settings.Settings, supervisor string, ready func()) error {
	server, k, err := prepare(ctx, s, supervisor)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	k.Socket = s.RuntimeEndpoint
	if k.Socket == "" {
		over, err := runtime(ctx, s, k.SystemdCgroups)
		if err != nil {
			return err
		}
		k.Socket = cri.Socket
		group.Go(func() error { return <-over })
	}
	if err := persist(ctx, "Waiting for the API server to become available", func() error {
		_, err := server.Get(ctx, "/v1-k3s/readyz")
		return err
	}); err != nil {
		return err
	}
	group.Go(kube.Unstoppable(ctx, k.Run))
	slog.Info("k3s agent is up and running")
	ready()
	return group.Wait()
}

func runtime(ctx context.Context, s settings.Settings, systemd bool) (<-chan error, error) {
	c := cri.Containerd{Dir: s.AgentDir(), PauseImage: s.PauseImage, Snapshotter: s.Snapshotter, SystemdCgroups: systemd}
	over, err := c.Start(ctx)
	if err != nil {
		return nil, err
	}
	return over, c.Import(ctx, s.AgentDir("images"))
}

// prepare gets from a server what the kubelet needs, as long as it takes.
func prepare(ctx context.Context, s settings.Settings, supervisor string) (server *joining.Server, k kube.Kubelet, err error) {
	err = persist(ctx, "Waiting to retrieve agent configuration; server is not ready", func() error {
		if server, err = joining.Meet(ctx, supervisor, s.Token, token.Node); err != nil {
			return err
		}
		k, err = fetch(ctx, s, server, supervisor)
		return err
	})
	return server, k, err
}

// persist tries again until there is no error or ctx ends.
func persist(ctx context.Context, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		slog.Info(what, "err", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func fetch(ctx context.Context, s settings.Settings, server *joining.Server, supervisor string) (kube.Kubelet, error) {
	f := filesOf(s)
	k := kube.Kubelet{
		NodeName: s.NodeName, NodeIP: s.NodeIP, Labels: s.Labels, Taints: s.Taints, User: s.KubeletArgs,
		Kubeconfig: f.kubeconfig, ClientCA: f.clientCA, Cert: f.serving.Cert, Key: f.serving.Key,
		SystemdCgroups: underSystemd(), ProtectKernelDefaults: s.ProtectKernelDefaults,
		StaticPods: s.AgentDir("pod-manifests"),
	}
	critical, err := server.Critical(ctx)
	if err != nil {
		return k, err
	}
	k.ClusterDNS, k.DNSDomain = critical.ClusterDNS, critical.ClusterDomain
	if err := os.MkdirAll(k.StaticPods, 0o700); err != nil {
		return k, err
	}
	if k.ResolvConf, err = resolvConf(s); err != nil {
		return k, err
	}
	password, err := nodepassword.Own(s.PasswordDir)
	if err != nil {
		return k, err
	}
	node := joining.Node{Name: s.NodeName, Password: password, IP: s.NodeIP}
	return k, errors.Join(
		f.download(ctx, server),
		server.Certificate(ctx, joining.ClientCertPath, node, s.PasswordDir, f.client.Cert, f.client.Key),
		server.Certificate(ctx, joining.ServingCertPath, node, s.PasswordDir, f.serving.Cert, f.serving.Key),
		f.writeKubeconfig(supervisor),
	)
}

// underSystemd reports whether systemd manages the control groups of this process.
func underSystemd() bool { return os.Getenv("INVOCATION_ID") != "" }
