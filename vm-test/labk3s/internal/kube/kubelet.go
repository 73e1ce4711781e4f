package kube

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletvalidation "k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
)

// Kubelet is what a kubelet depends on besides its settings.
type Kubelet struct {
	NodeName, NodeIP      string
	Kubeconfig            string // paths
	ClientCA, Cert, Key   string
	Socket                string // of the CRI
	ClusterDNS, DNSDomain string
	ResolvConf            string
	StaticPods            string // directory of manifests
	Labels, Taints        []string
	SystemdCgroups        bool
	ProtectKernelDefaults bool
	User                  []string // flags that the user wants, "name=value"
}

func (k Kubelet) args() Args {
	driver := "cgroupfs"
	if k.SystemdCgroups {
		driver = "systemd"
	}
	a := Args{
		"anonymous-auth=false",
		"authentication-token-webhook=true",
		"authorization-mode=Webhook",
		"cgroup-driver=" + driver,
		"client-ca-file=" + k.ClientCA,
		"cluster-dns=" + k.ClusterDNS,
		"cluster-domain=" + k.DNSDomain,
		"container-runtime-endpoint=unix://" + k.Socket,
		"eviction-hard=imagefs.available<5%,nodefs.available<5%",
		"eviction-minimum-reclaim=imagefs.available=10%,nodefs.available=10%",
		"fail-swap-on=false",
		"healthz-bind-address=127.0.0.1",
		"hostname-override=" + k.NodeName,
		// Images come from tarballs and cannot be had again.
		"image-gc-high-threshold=100",
		"kubeconfig=" + k.Kubeconfig,
		"node-ip=" + k.NodeIP,
		"node-labels=" + strings.Join(append([]string{"node.kubernetes.io/instance-type=k3s"}, k.Labels...), ","),
		"pod-manifest-path=" + k.StaticPods,
		"provider-id=k3s://" + k.NodeName,
		"read-only-port=0",
		"serialize-image-pulls=false",
		"tls-cert-file=" + k.Cert,
		"tls-private-key-file=" + k.Key,
	}
	if k.ResolvConf != "" {
		a = append(a, "resolv-conf="+k.ResolvConf)
	}
	if len(k.Taints) > 0 {
		a = append(a, "register-with-taints="+strings.Join(k.Taints, ","))
	}
	if k.ProtectKernelDefaults {
		a = append(a, "protect-kernel-defaults=true")
	}
	return a.with(k.User)
}

// Run runs the kubelet until ctx ends or it does.
func (k Kubelet) Run(ctx context.Context) error {
	flags := options.NewKubeletFlags()
	config, err := options.NewKubeletConfiguration()
	if err != nil {
		return err
	}
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	flags.AddFlags(fs)
	options.AddKubeletConfigFlags(fs, config)
	if err := k.args().into("kubelet", fs); err != nil {
		return err
	}
	gate := utilfeature.DefaultFeatureGate
	if err := kubeletvalidation.ValidateKubeletConfiguration(config, gate); err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	server := &options.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *config}
	deps, err := app.UnsecuredDependencies(ctx, server, gate)
	if err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	return ended(ctx, "kubelet", app.Run(ctx, server, deps, gate))
}
