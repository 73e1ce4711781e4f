package rebuild

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

func (r *rebuild) nodeRef() object.Ref {
	return object.Ref{APIVersion: "v1", Kind: "Node", Name: r.Node.Name}
}

// passwordRef is the Secret in which k3s keeps the password of a node. Names of
// objects are in lower case, those of nodes need not be.
func passwordRef(node string) object.Ref {
	return object.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "kube-system", Name: strings.ToLower(node) + ".node-password.k3s"}
}

func (r *rebuild) ciliumRef() object.Ref {
	return object.Ref{APIVersion: "cilium.io/v2", Kind: "CiliumNode", Name: r.Node.Name}
}

func passwordRejected(node string) error {
	return exit.With(exit.Refused, no("give the same command again: it deletes the Secret, and k3s makes a new one",
		"the cluster refuses %s: Secret %s/%s holds the password that it had before its install", node, passwordRef(node).Namespace, passwordRef(node).Name))
}

// forgotten deletes what the cluster remembers of the node, in this order: the Node
// first, because k3s gives the password back to a Node that is there.
func (r *rebuild) forgotten() sequence.Step {
	return sequence.Of(r.step("the cluster has forgotten it", objectsTime), r.remains,
		func(left []object.Ref) ([]sequence.Change, error) {
			var out []sequence.Change
			for _, ref := range left {
				out = append(out, sequence.Change{Verb: sequence.Destroy, What: ref.String(), Why: why(ref.Kind)})
			}
			return out, nil
		}, r.forget)
}

func why(kind string) string {
	switch kind {
	case "Secret":
		return "k3s would refuse the reinstalled node, which has another password"
	case "CiliumNode":
		return "it holds addresses of pods that are gone"
	}
	return "it comes back under the same name as another machine"
}

// remains are those of the objects that are there. After the install the Node is the
// new one, and the others are its own as soon as it has begun to join.
func (r *rebuild) remains(ctx context.Context) ([]object.Ref, error) {
	fresh, err := r.fresh(ctx)
	if err != nil {
		return nil, err
	}
	all := []object.Ref{r.nodeRef(), passwordRef(r.Node.Name), r.ciliumRef()}
	if fresh {
		if there, err := r.back(ctx); there || err != nil {
			return nil, err
		}
		all = all[1:]
	}
	var left []object.Ref
	for _, ref := range all {
		_, err := r.Reader.Get(ctx, ref)
		there, err := exists(err)
		if err != nil {
			return nil, err
		}
		if there {
			left = append(left, ref)
		}
	}
	return left, nil
}

// back reports whether the reinstalled node has come so far that what is there is its
// own: it has registered, or k3s runs on it and is not refused.
func (r *rebuild) back(ctx context.Context) (bool, error) {
	_, err := r.Reader.Get(ctx, r.nodeRef())
	if there, err := exists(err); there || err != nil {
		return there, err
	}
	out, err := r.ask(ctx, fmt.Sprintf("test -e %s && journalctl --boot --no-pager --output=cat --since=-60s --unit=%s; true", k3sconf.ConfigPath, k3sconf.Unit(r.Node.Role)))
	return err == nil && out != "" && !strings.Contains(out, rejected), nil
}

func (r *rebuild) forget(ctx context.Context, left []object.Ref, tell sequence.Tell) error {
	fresh, err := r.fresh(ctx)
	if err != nil {
		return err
	}
	if !fresh { // what the reinstalled node is refused by costs nothing any more
		if err := r.guard(ctx); err != nil {
			return err
		}
	}
	for _, ref := range left {
		if err := r.Changer.Delete(ctx, ref); err != nil {
			return err
		}
		if err := r.gone(ctx, ref, tell); err != nil {
			return err
		}
	}
	return nil
}

// gone waits for the end of an object: k3s and others hold a Node by finalizers until
// they have done their part.
func (r *rebuild) gone(ctx context.Context, ref object.Ref, tell sequence.Tell) error {
	for {
		o, err := r.Reader.Get(ctx, ref)
		there, err := exists(err)
		if err == nil && !there {
			return nil
		}
		words := "for " + ref.String() + " to be gone"
		if held, _ := object.At(o, "metadata", "finalizers").([]any); len(held) > 0 {
			words += fmt.Sprintf("; %v hold it", held)
		}
		if err != nil {
			words += ": " + err.Error()
		}
		tell(words)
		if err := r.Pause(ctx); err != nil {
			return err
		}
	}
}
