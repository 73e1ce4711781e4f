package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/slipway/slipway/internal/payload/object"
)

// page is how many objects one answer to a list holds.
const page = 500

// Ready asks the API server whether it can serve (/readyz).
func (c *Client) Ready(ctx context.Context) error {
	return c.ask(ctx, "/readyz")
}

func (c *Client) ask(ctx context.Context, path string) error {
	body, err := c.cached.RESTClient().Get().AbsPath(path).Do(ctx).Raw()
	if err != nil {
		if len(body) > 0 {
			return fmt.Errorf("%s%s: %w: %s", c.config.Host, path, err, body)
		}
		return fmt.Errorf("%s%s: %w", c.config.Host, path, err)
	}
	return nil
}

// Version is the version of the API server, such as v1.34.4+k3s1.
func (c *Client) Version(ctx context.Context) (string, error) {
	var version string
	err := c.try(ctx, "version of the API server", func() error {
		info, err := c.cached.ServerVersion()
		if err == nil {
			version = info.GitVersion
		}
		return err
	})
	return version, err
}

// Serves reports whether the server knows a kind now; what was remembered is
// forgotten before.
func (c *Client) Serves(ctx context.Context, apiVersion, kind string) (bool, error) {
	c.mapper.Reset()
	known := false
	err := c.try(ctx, apiVersion+" "+kind, func() error {
		_, err := c.mapping(apiVersion, kind)
		known = err == nil
		if meta.IsNoMatchError(err) {
			return nil
		}
		return err
	})
	return known, err
}

func (c *Client) mapping(apiVersion, kind string) (*meta.RESTMapping, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	return c.mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: kind}, gv.Version)
}

// in is where objects of the kind of r are read and written.
func (c *Client) in(r object.Ref) (dynamic.ResourceInterface, error) {
	m, err := c.mapping(r.APIVersion, r.Kind)
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return c.objects.Resource(m.Resource), nil
	}
	if r.Namespace == "" {
		return nil, fmt.Errorf("%s has no namespace", r)
	}
	return c.objects.Resource(m.Resource).Namespace(r.Namespace), nil
}

// Get reads one object. The error is object.ErrNotFound where there is none, and
// where the server does not know the kind.
func (c *Client) Get(ctx context.Context, r object.Ref) (map[string]any, error) {
	var found map[string]any
	err := c.try(ctx, r.String(), func() error {
		where, err := c.in(r)
		if err != nil {
			return err
		}
		u, err := where.Get(ctx, r.Name, metav1.GetOptions{})
		if err == nil {
			found = u.Object
		}
		return err
	})
	return found, err
}

// List reads the objects of a kind in a namespace, in all where it is empty. The
// selector is of labels; empty selects all. A kind that the server does not know
// has no objects.
func (c *Client) List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error) {
	var all []map[string]any
	err := c.lists(ctx, apiVersion, kind, func(m *meta.RESTMapping, o metav1.ListOptions) (string, error) {
		o.LabelSelector = selector
		l, err := c.objects.Resource(m.Resource).Namespace(namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for _, item := range l.Items {
			all = append(all, item.Object)
		}
		return l.GetContinue(), nil
	})
	return all, err
}

// Metadata reads apiVersion, kind and metadata of the objects of a kind: definitions
// are large, and this leaves out what makes them so.
func (c *Client) Metadata(ctx context.Context, apiVersion, kind, namespace string) ([]map[string]any, error) {
	var all []map[string]any
	err := c.lists(ctx, apiVersion, kind, func(m *meta.RESTMapping, o metav1.ListOptions) (string, error) {
		l, err := c.metadata.Resource(m.Resource).Namespace(namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range l.Items {
			l.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
			item, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&l.Items[i])
			if err != nil {
				return "", err
			}
			all = append(all, item)
		}
		return l.Continue, nil
	})
	return all, err
}

// lists asks for page after page.
func (c *Client) lists(ctx context.Context, apiVersion, kind string, ask func(*meta.RESTMapping, metav1.ListOptions) (next string, err error)) error {
	options := metav1.ListOptions{Limit: page}
	for {
		unknown := false
		err := c.try(ctx, "list of "+kind, func() error {
			m, err := c.mapping(apiVersion, kind)
			if meta.IsNoMatchError(err) {
				unknown = true
				return nil
			}
			if err != nil {
				return err
			}
			options.Continue, err = ask(m, options)
			return err
		})
		if err != nil || unknown || options.Continue == "" {
			return err
		}
	}
}

// Namespaced reports whether objects of a kind live in namespaces.
func (c *Client) Namespaced(ctx context.Context, apiVersion, kind string) (bool, error) {
	namespaced := false
	err := c.try(ctx, apiVersion+" "+kind, func() error {
		m, err := c.mapping(apiVersion, kind)
		if err == nil {
			namespaced = m.Scope.Name() == meta.RESTScopeNameNamespace
		}
		return err
	})
	return namespaced, err
}
