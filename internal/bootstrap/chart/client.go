package chart

import (
	"context"
	"errors"
	"net/http"

	"helm.sh/helm/v3/pkg/action"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway/slipway/internal/bootstrap/kube"
)

// Client makes releases in one cluster.
type Client struct {
	Kube *kube.Client
}

// keep is how many revisions of a release are kept; each holds the whole chart.
const keep = 5

// errOver is what requests get that Helm still sends when its work is over.
var errOver = errors.New("the work that this request belongs to has ended")

// helm is a configuration of Helm for one piece of work in a namespace. Helm's
// actions do not end with their context; the requests do, so that nothing goes on
// behind the back of whoever was told that the work has ended.
func (c Client) helm(ctx context.Context, namespace string) (*action.Configuration, func(), error) {
	work, cancel := context.WithCancelCause(ctx)
	cfg := &action.Configuration{}
	err := cfg.Init(getter{c.Kube, namespace, work}, namespace, "secret", func(string, ...any) {})
	if err != nil {
		cancel(err)
		return nil, nil, err
	}
	cfg.Releases.MaxHistory = keep
	return cfg, func() { cancel(errOver) }, nil
}

// getter hands Helm what package kube has: the connection, and the kinds that are
// known already.
type getter struct {
	kube      *kube.Client
	namespace string
	work      context.Context
}

func (g getter) ToRESTConfig() (*rest.Config, error) {
	config := g.kube.Config()
	config.Transport = bound{config.Transport, g.work}
	return config, nil
}

func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	known, _ := g.kube.Kinds()
	return known, nil
}

func (g getter) ToRESTMapper() (meta.RESTMapper, error) {
	_, mapper := g.kube.Kinds()
	return mapper, nil
}

func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*api.NewConfig(), &clientcmd.ConfigOverrides{Context: api.Context{Namespace: g.namespace}})
}

// bound ends requests together with the work that they belong to.
type bound struct {
	next http.RoundTripper
	work context.Context
}

func (b bound) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.work.Err() != nil {
		return nil, context.Cause(b.work)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	// It lets go when the work ends: the body of the answer is read after this returns.
	context.AfterFunc(b.work, func() { cancel(context.Cause(b.work)) })
	return b.next.RoundTrip(r.WithContext(ctx))
}
