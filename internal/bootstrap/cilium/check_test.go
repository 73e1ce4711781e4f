package cilium

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/cilium/api/v1/models"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/ciliumvalues"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/sequence"
)

func profile(t *testing.T) cluster.Cluster {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "..", "profiles", "dev.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Cluster
}

// wanted is a release that is never looked at when the values are refused.
type wanted struct{ looked *int }

func (w wanted) Changes(context.Context) ([]sequence.Change, error) { *w.looked++; return nil, nil }
func (w wanted) Apply(context.Context, sequence.Tell) error         { *w.looked++; return nil }

func network(t *testing.T, change func(v map[string]any, n *Network)) (Network, *int) {
	t.Helper()
	c := profile(t)
	looked := 0
	n := Network{Release: wanted{&looked}, Values: ciliumvalues.Values(c), PodCIDR: c.Network.PodCIDR.String(), Gateway: &Gateway{Version: "1.5.1", Manifest: wanted{&looked}, Definitions: bundle("v1")}}
	for _, node := range c.Nodes {
		n.Nodes = append(n.Nodes, node.Name)
	}
	change(n.Values, &n)
	return n, &looked
}

// bundle defines all required kinds; skip leaves some out.
func bundle(version string, skip ...string) []map[string]any {
	var out []map[string]any
	for _, kind := range required {
		if strings.Contains(strings.Join(skip, " "), kind) {
			continue
		}
		out = append(out, map[string]any{"kind": "CustomResourceDefinition", "spec": map[string]any{"group": group, "names": map[string]any{"kind": kind},
			"versions": []any{map[string]any{"name": "v1beta1", "served": true}, map[string]any{"name": version, "served": true}}}})
	}
	return out
}

func TestValuesThatAreRefused(t *testing.T) {
	sub := func(v map[string]any, key string) map[string]any { return v[key].(map[string]any) }
	for name, c := range map[string]struct {
		change func(v map[string]any, n *Network)
		want   string
	}{
		"good":                {func(map[string]any, *Network) {}, ""},
		"kube-proxy":          {func(v map[string]any, _ *Network) { v["kubeProxyReplacement"] = false }, "kubeProxyReplacement is not true"},
		"one node's address":  {func(v map[string]any, _ *Network) { v["k8sServiceHost"] = "10.0.2.15" }, "10.0.2.15:6443 and not the node's own API server"},
		"the Service's port":  {func(v map[string]any, _ *Network) { v["k8sServicePort"] = 443 }, "127.0.0.1:443 and not"},
		"the default pool":    {func(v map[string]any, _ *Network) { delete(v, "ipam") }, "and not k3s's cluster-cidr 10."},
		"another pool":        {func(_ map[string]any, n *Network) { n.PodCIDR = "10.99.0.0/16" }, "and not k3s's cluster-cidr 10.99.0.0/16"},
		"one node":            {func(_ map[string]any, n *Network) { n.Nodes = n.Nodes[:1] }, "operator.replicas is 2 with 1 nodes"},
		"default replicas":    {func(v map[string]any, n *Network) { delete(sub(v, "operator"), "replicas"); n.Nodes = n.Nodes[:1] }, "operator.replicas is 2 with 1 nodes"},
		"agents that stay":    {func(v map[string]any, _ *Network) { v["rollOutCiliumPods"] = false }, "are not both true"},
		"operators that stay": {func(v map[string]any, _ *Network) { delete(sub(v, "operator"), "rollOutPods") }, "are not both true"},
		"certificates by Helm": {func(v map[string]any, _ *Network) {
			v["hubble"] = map[string]any{"enabled": true, "tls": map[string]any{"auto": map[string]any{"method": "helm"}}}
		}, "hubble.tls.auto.method is helm"},
		"no definitions": {func(v map[string]any, n *Network) { v["gatewayAPI"] = map[string]any{"enabled": true}; n.Gateway = nil }, "the build has no definitions"},
		"several":        {func(v map[string]any, _ *Network) { v["kubeProxyReplacement"], v["k8sServiceHost"] = false, "auto" }, "kubeProxyReplacement is not true, and k3s runs no kube-proxy; k8sServiceHost"},
	} {
		n, looked := network(t, c.change)
		steps := Install(n, nil)
		step := steps[0]
		if n.Gateway != nil {
			step = steps[1]
		}
		_, err := step.Observe(t.Context())
		switch {
		case c.want == "" && (err != nil || *looked != 1):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), c.want) || *looked != 0):
			t.Errorf("%s: %v, want %q; looked %d times", name, err, c.want, *looked)
		}
	}
}

func TestDefinitionsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		definitions []map[string]any
		want        string
	}{
		"complete":    {bundle("v1"), ""},
		"too old":     {bundle("v1", "TLSRoute", "BackendTLSPolicy"), "has no TLSRoute, BackendTLSPolicy of version v1"},
		"other group": {append(bundle("v1", "GRPCRoute"), map[string]any{"kind": "CustomResourceDefinition", "spec": map[string]any{"group": "x", "names": map[string]any{"kind": "GRPCRoute"}}}), "has no GRPCRoute"},
		"not served":  {bundle("v2"), "has no GatewayClass, Gateway"},
	} {
		n, looked := network(t, func(_ map[string]any, n *Network) { n.Gateway.Definitions = c.definitions })
		_, err := Install(n, nil)[0].Observe(t.Context())
		if c.want == "" && err == nil && *looked == 1 {
			continue
		}
		if c.want == "" || exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), c.want) || diag.HintOf(err) == "" || *looked != 0 {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Without the Gateway API there is nothing of it.
func TestWithoutGateway(t *testing.T) {
	n, _ := network(t, func(v map[string]any, n *Network) { delete(v, "gatewayAPI"); n.Gateway = nil })
	if steps := Install(n, nil); len(steps) != 1 {
		t.Errorf("%d steps", len(steps))
	}
	if steps := Ready(n, nil, nil, nil); len(steps) != 1+len(n.Nodes) {
		t.Errorf("%d waits", len(steps))
	}
}

func TestUnwell(t *testing.T) {
	good := func() *models.StatusResponse {
		return &models.StatusResponse{Cilium: &models.Status{State: "Ok"}, Kubernetes: &models.K8sStatus{State: "Ok"}, KubeProxyReplacement: &models.KubeProxyReplacement{Mode: "True"}}
	}
	for name, c := range map[string]struct {
		change func(*models.StatusResponse)
		want   string
	}{
		"well":               {func(*models.StatusResponse) {}, ""},
		"says nothing":       {func(s *models.StatusResponse) { s.Cilium = nil }, "says nothing about itself"},
		"not well":           {func(s *models.StatusResponse) { s.Cilium = &models.Status{State: "Warning", Msg: "stale"} }, "Warning: stale"},
		"no API server":      {func(s *models.StatusResponse) { s.Kubernetes.State, s.Kubernetes.Msg = "Failure", "refused" }, "Kubernetes: Failure: refused"},
		"kube-proxy is used": {func(s *models.StatusResponse) { s.KubeProxyReplacement.Mode = "False" }, "it does not replace kube-proxy"},
	} {
		s := good()
		c.change(s)
		if got := unwell(s); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if unwell(nil) == "" {
		t.Error("no answer is taken for a good one")
	}
}

// The agent's API is asked over the stream that is handed over.
func TestAsk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cilium.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	asked := ""
	agent := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(models.StatusResponse{Cilium: &models.Status{State: "Ok", Msg: "1.20.2"}})
	})}
	go agent.Serve(l)
	defer agent.Close()
	var d net.Dialer
	status, err := ask(t.Context(), "n1", func(ctx context.Context, node string) (net.Conn, error) {
		if node != "n1" {
			t.Errorf("dialled %s", node)
		}
		return d.DialContext(ctx, "unix", path)
	})
	if err != nil || status.Cilium.Msg != "1.20.2" || asked != "/v1/healthz" {
		t.Errorf("%+v, %v, asked %s", status, err, asked)
	}
	changes := healthy(t.Context(), "n1", func(context.Context, string) (net.Conn, error) { return nil, errors.New("no way there") })
	if len(changes) != 1 || !strings.Contains(changes[0].Why, "no way there") {
		t.Errorf("%+v", changes)
	}
}
