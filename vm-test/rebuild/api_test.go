package rebuild

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/payload/object"
)

// api is the API server, with the two things that only its own parts may do: write an
// object's status, and see everything.
type api struct {
	*kube.Client
	raw dynamic.Interface
}

func connect(t testing.TB, kubeconfig []byte) api {
	t.Helper()
	c, err := kube.New(kubeconfig, nil)
	must(t, err)
	raw, err := dynamic.NewForConfig(c.Config())
	must(t, err)
	return api{c, raw}
}

// make makes objects, with their status.
func (a api) make(t testing.TB, objects ...map[string]any) {
	t.Helper()
	for _, o := range objects {
		spec := maps.Clone(o)
		delete(spec, "status")
		must(t, a.Apply(t.Context(), []map[string]any{spec}, nil))
		if status, ok := o["status"]; ok {
			a.status(t, object.Of(o), status)
		}
	}
}

func (a api) status(t testing.TB, r object.Ref, status any) {
	t.Helper()
	must(t, a.patch(t.Context(), r, map[string]any{"status": status}, "status"))
}

func (a api) patch(ctx context.Context, r object.Ref, change any, sub ...string) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, mapper := a.Kinds()
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return err
	}
	m, err := mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: r.Kind}, gv.Version)
	if err != nil {
		return err
	}
	_, err = a.raw.Resource(m.Resource).Namespace(r.Namespace).Patch(ctx, r.Name, types.MergePatchType, data, metav1.PatchOptions{}, sub...)
	return err
}

// everything is all objects of all kinds, with their versions.
func (a api) everything(t testing.TB) map[string]string {
	t.Helper()
	cached, _ := a.Kinds()
	cached.Invalidate()
	lists, err := cached.ServerPreferredResources()
	must(t, err)
	out := map[string]string{}
	for _, l := range lists {
		for _, kind := range l.APIResources {
			if !slices.Contains(kind.Verbs, "list") || strings.Contains(kind.Name, "/") || kind.Kind == "Event" || kind.Kind == "Lease" {
				continue
			}
			found, err := a.Metadata(t.Context(), l.GroupVersion, kind.Kind, "")
			must(t, err)
			for _, o := range found {
				out[object.Of(o).String()] = fmt.Sprint(object.Text(o, "metadata", "uid"), " ", object.Text(o, "metadata", "resourceVersion"))
			}
		}
	}
	if len(out) < 50 {
		t.Fatalf("only %d objects were found", len(out))
	}
	return out
}

// changes are what differs between two looks at everything.
func changes(before, after map[string]string) []string {
	var out []string
	for name, version := range before {
		if is, there := after[name]; !there {
			out = append(out, "gone: "+name)
		} else if is != version {
			out = append(out, "changed: "+name)
		}
	}
	for name := range after {
		if _, there := before[name]; !there {
			out = append(out, "new: "+name)
		}
	}
	slices.Sort(out)
	return out
}
