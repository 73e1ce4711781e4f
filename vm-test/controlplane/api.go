package controlplane

import (
	"context"
	"strings"
)

// StartAPI starts the API server, at first or after StopAPI, and returns when it is
// ready.
func (p *Plane) StartAPI() {
	p.t.Helper()
	p.api = p.start("apiserver", "apiserver", p.apiFlags()...)
	client := p.Client()
	p.until("API server", p.api.alive, func(ctx context.Context) error {
		return get(ctx, client, p.Server()+"/readyz")
	})
}

// StopAPI ends the API server without a word.
func (p *Plane) StopAPI() { p.api.kill() }

func (p *Plane) apiFlags() []string {
	ca, cert, key := p.EtcdFiles()
	return append([]string{
		"--etcd-servers=" + strings.Join(p.EtcdEndpoints(), ","),
		"--etcd-cafile=" + ca, "--etcd-certfile=" + cert, "--etcd-keyfile=" + key,
		"--bind-address=" + p.Address(), "--secure-port=6443",
		// Without it the address of the default route is looked for, and there may be none.
		"--advertise-address=" + p.Address(),
		// Endpoints may not be loopback addresses.
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + p.path("apiserver.crt"), "--tls-private-key-file=" + p.path("apiserver.key"),
		"--client-ca-file=" + p.path("kube-ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.path("serviceaccounts.key"),
		"--service-account-signing-key-file=" + p.path("serviceaccounts.key"),
		"--service-cluster-ip-range=" + p.options.ServiceCIDR,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true", "--profiling=false",
	}, p.options.APIFlags...)
}

// startControllers starts the controllers that live without nodes. Those that judge
// nodes by their heartbeats would take the nodes that tests make for dead.
func (p *Plane) startControllers() {
	p.t.Helper()
	config := p.Kubeconfig()
	p.controllers = p.start("controller-manager", "controller-manager",
		"--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--controllers=*,-node-lifecycle-controller,-taint-eviction-controller,-pod-garbage-collector-controller",
		"--leader-elect=false", "--bind-address="+p.Address(), "--secure-port=10257", "--profiling=false",
		"--root-ca-file="+p.path("kube-ca.crt"),
		"--service-account-private-key-file="+p.path("serviceaccounts.key"))
	client := p.Client()
	p.until("service account of namespace default", p.controllers.alive, func(ctx context.Context) error {
		return get(ctx, client, p.Server()+"/api/v1/namespaces/default/serviceaccounts/default")
	})
}
