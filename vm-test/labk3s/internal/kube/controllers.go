package kube

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
)

// patience are the times of leader election on a machine that may be emulated, where
// the defaults would end the process whenever etcd is slow for ten seconds.
var patience = Args{"leader-elect-lease-duration=60s", "leader-elect-renew-deadline=45s", "leader-elect-retry-period=5s"}

func controllerArgs(s settings.Settings, f pki.Files) Args {
	config := f.Kubeconfig("controller")
	a := Args{
		"allocate-node-cidrs=true",
		"authentication-kubeconfig=" + config,
		"authorization-kubeconfig=" + config,
		"bind-address=127.0.0.1",
		"cluster-cidr=" + s.ClusterCIDR,
		"cluster-signing-kube-apiserver-client-cert-file=" + f.ClientCA().Cert,
		"cluster-signing-kube-apiserver-client-key-file=" + f.ClientCA().Key,
		"cluster-signing-kubelet-client-cert-file=" + f.ClientCA().Cert,
		"cluster-signing-kubelet-client-key-file=" + f.ClientCA().Key,
		"cluster-signing-kubelet-serving-cert-file=" + f.ServerCA().Cert,
		"cluster-signing-kubelet-serving-key-file=" + f.ServerCA().Key,
		"cluster-signing-legacy-unknown-cert-file=" + f.ClientCA().Cert,
		"cluster-signing-legacy-unknown-key-file=" + f.ClientCA().Key,
		"controllers=*,tokencleaner,-service,-route,-cloud-node-lifecycle",
		"kubeconfig=" + config,
		"profiling=false",
		"root-ca-file=" + f.ServerCA().Cert,
		"secure-port=10257",
		"service-account-private-key-file=" + f.ServiceKey(),
		"service-cluster-ip-range=" + s.ServiceCIDR,
		"use-service-account-credentials=true",
	}
	return append(a, patience...).with(s.ControllerArgs)
}

// ControllerManager runs the controller manager until ctx ends or it does.
func ControllerManager(ctx context.Context, s settings.Settings, f pki.Files) error {
	opts, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	all, off, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	if err := controllerArgs(s, f).parse("kube-controller-manager", opts.Flags(all, off, aliases), opts.ComponentGlobalsRegistry); err != nil {
		return err
	}
	c, err := opts.Config(ctx, all, off, aliases)
	if err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	return ended(ctx, "kube-controller-manager", app.Run(ctx, c.Complete()))
}

func schedulerArgs(s settings.Settings, f pki.Files) Args {
	config := f.Kubeconfig("scheduler")
	a := Args{
		"authentication-kubeconfig=" + config,
		"authorization-kubeconfig=" + config,
		"bind-address=127.0.0.1",
		"kubeconfig=" + config,
		"profiling=false",
		"secure-port=10259",
	}
	return append(a, patience...).with(s.SchedulerArgs)
}

// Scheduler runs the scheduler until ctx ends or it does.
func Scheduler(ctx context.Context, s settings.Settings, f pki.Files) error {
	opts := scheduleroptions.NewOptions()
	if err := schedulerArgs(s, f).parse("kube-scheduler", *opts.Flags, opts.ComponentGlobalsRegistry); err != nil {
		return err
	}
	c, sched, err := scheduler.Setup(ctx, opts)
	if err != nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}
	return ended(ctx, "kube-scheduler", scheduler.Run(ctx, c, sched))
}

// Unstoppable runs a part that ends the whole process when it is told to end: it is
// not told, and goes with the process.
func Unstoppable(ctx context.Context, run func(context.Context) error) func() error {
	return func() error {
		over := make(chan error, 1)
		go func() { over <- run(context.WithoutCancel(ctx)) }()
		select {
		case err := <-over:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// ended is the error of a part that should have gone on.
func ended(ctx context.Context, part string, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	return fmt.Errorf("%s: %w", part, err)
}
