// Command k3s stands in for k3s in the lab. It keeps what k3s promises to the
// outside (flags, files, the protocol of joining) and is made of the same upstream
// parts, and it is not k3s: it has no flannel, kube-proxy, service load balancer or
// Helm controller, and calls itself labk3s.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	_ "time/tzdata" // a node may have no time zones

	"github.com/spf13/pflag"
	_ "k8s.io/component-base/logs/json/register"          // the format json of the parts' logs
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // their metrics
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/slipway/slipway/vm-test/labk3s/internal/agent"
	"github.com/slipway/slipway/vm-test/labk3s/internal/kube"
	"github.com/slipway/slipway/vm-test/labk3s/internal/server"
	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
)

const usage = `labk3s, a stand-in for k3s in tests

usage: k3s server [flags]              run a server, and its node
       k3s agent [flags]               run a node
       k3s kubectl ...                 speak with the cluster
       k3s ctr ... | crictl ...        speak with containerd
       k3s etcd-snapshot save | ls | delete NAME... | prune [flags]
       k3s --version
`

// commands are what the first argument may be. k3s may also be called by their names.
var commands = map[string]func(args []string) error{
	"server":        runNode(settings.Server),
	"agent":         runNode(settings.Agent),
	"kubectl":       kubectl,
	"ctr":           ctr,
	"crictl":        crictl,
	"etcd-snapshot": etcdSnapshot,
	"--version":     version,
	"-v":            version,
	"--help":        help,
	"-h":            help,
	"help":          help,
}

func main() {
	args := os.Args[1:]
	if name := filepath.Base(os.Args[0]); name == "kubectl" || name == "ctr" || name == "crictl" {
		args = append([]string{name}, args...)
	}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(1)
	}
	switch err := commands[args[0]](args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		slog.Error("Error: " + err.Error())
		os.Exit(1)
	}
}

func help([]string) error {
	fmt.Print(usage)
	return nil
}

// runNode runs a server or an agent until it is told to end.
func runNode(role string) func([]string) error {
	return func(args []string) error {
		s, err := settings.Parse(role, args)
		if err != nil {
			return err
		}
		ready := notifier()
		if err := kube.Prepare(s.V); err != nil {
			return err
		}
		level := slog.LevelInfo
		if s.Debug {
			level = slog.LevelDebug
		}
		// After the parts, which would write our lines in their format.
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
		if err := os.MkdirAll(s.DataDir, 0o755); err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		slog.Info("Starting labk3s "+kubernetesVersion(), "role", role, "node", s.NodeName)
		if role == settings.Agent {
			return done(ctx, agent.Run(ctx, s, ready))
		}
		return done(ctx, server.Run(ctx, s, ready))
	}
}

// done is the error of a node that was not told to end.
func done(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, server.ErrReset):
		slog.Info(err.Error())
		return nil
	case err == nil:
		return errors.New("a part has ended by itself")
	default:
		return err
	}
}
