// Package nodes keeps Node objects and what hangs on them: a server marks its own
// node as a member of etcd, and when a node is deleted its member and the password
// that the cluster remembers go with it.
//
// Every server does this; nobody has to lead, because all of it may be done twice.
package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway/slipway/vm-test/labk3s/internal/nodepassword"
)

// Names that k3s gives.
const (
	RoleControlPlane = "node-role.kubernetes.io/control-plane"
	RoleEtcd         = "node-role.kubernetes.io/etcd"

	memberName    = "etcd.k3s.cattle.io/node-name"
	memberAddress = "etcd.k3s.cattle.io/node-address"
	removeMember  = "etcd.k3s.cattle.io/remove"
	removedMember = "etcd.k3s.cattle.io/removed-node-name"

	memberFinalizer   = "wrangler.cattle.io/managed-etcd-controller"
	passwordFinalizer = "wrangler.cattle.io/node"
)

// again is how often every node is looked at anew, which also repeats what failed.
const again = 15 * time.Second

// Members removes members of etcd.
type Members interface {
	Remove(ctx context.Context, name, address string) error
}

// Own is what a server says about its own node.
type Own struct{ Node, Member, Address string }

// Keeper keeps the nodes.
type Keeper struct {
	Client  kubernetes.Interface
	Members Members
	Own     Own
}

// Run keeps the nodes until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(k.Client, 0)
	informer := factory.Core().V1().Nodes().Informer()
	look := func(obj any) {
		if n, ok := obj.(*corev1.Node); ok {
			k.look(ctx, n)
		}
	}
	_, err := informer.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, obj any) { look(obj) },
	}, again)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

func (k *Keeper) look(ctx context.Context, n *corev1.Node) {
	if err := k.keep(ctx, n); err != nil && ctx.Err() == nil {
		slog.Error("keeping a node", "node", n.Name, "err", err)
	}
}

func (k *Keeper) keep(ctx context.Context, n *corev1.Node) error {
	switch {
	case n.DeletionTimestamp != nil:
		return k.farewell(ctx, n)
	case n.Annotations[removeMember] == "true" && n.Annotations[memberName] != "":
		return k.retire(ctx, n)
	case n.Name == k.Own.Node:
		return k.mark(ctx, n)
	default:
		return k.claim(ctx, n, passwordFinalizer)
	}
}

// mark says on our own node which member of etcd it is.
func (k *Keeper) mark(ctx context.Context, n *corev1.Node) error {
	m := metadata{
		Labels:      map[string]string{RoleControlPlane: "true", RoleEtcd: "true"},
		Annotations: map[string]any{memberName: k.Own.Member, memberAddress: k.Own.Address},
		Finalizers:  []string{memberFinalizer, passwordFinalizer},
	}
	if removed := n.Annotations[removedMember]; removed != "" && removed != k.Own.Member {
		m.Annotations[removedMember], m.Annotations[removeMember] = nil, nil // the node is back as another member
	}
	if n.Annotations[removedMember] == k.Own.Member || m.holds(n) {
		return nil
	}
	return k.patch(ctx, n, m)
}

// claim makes the node's deletion wait for us.
func (k *Keeper) claim(ctx context.Context, n *corev1.Node, finalizer string) error {
	if slices.Contains(n.Finalizers, finalizer) {
		return nil
	}
	return k.patch(ctx, n, metadata{Finalizers: []string{finalizer}})
}

// retire removes the member of a node that stays: an annotation asks for it.
func (k *Keeper) retire(ctx context.Context, n *corev1.Node) error {
	if err := k.removeMember(ctx, n); err != nil {
		return err
	}
	return k.patch(ctx, n, metadata{Annotations: map[string]any{
		removedMember: n.Annotations[memberName], memberName: nil, memberAddress: nil,
	}})
}

// farewell does what a deleted node waits for.
func (k *Keeper) farewell(ctx context.Context, n *corev1.Node) error {
	if slices.Contains(n.Finalizers, memberFinalizer) {
		if err := k.removeMember(ctx, n); err != nil {
			return err
		}
	}
	if slices.Contains(n.Finalizers, passwordFinalizer) {
		secrets := k.Client.CoreV1().Secrets(metav1.NamespaceSystem)
		if err := nodepassword.Forget(ctx, secrets, n.Name); err != nil {
			return fmt.Errorf("forgetting its password: %w", err)
		}
	}
	return k.patch(ctx, n, metadata{Drop: []string{memberFinalizer, passwordFinalizer}})
}

func (k *Keeper) removeMember(ctx context.Context, n *corev1.Node) error {
	name, address := n.Annotations[memberName], n.Annotations[memberAddress]
	if name == "" {
		return nil
	}
	if err := k.Members.Remove(ctx, name, address); err != nil {
		return fmt.Errorf("removing member %s of etcd: %w", name, err)
	}
	return nil
}

// metadata is a change of an object's metadata, as a strategic merge patch.
type metadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]any    `json:"annotations,omitempty"` // nil removes
	Finalizers  []string          `json:"finalizers,omitempty"`  // added
	Drop        []string          `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
}

// holds reports whether the node has all of it already.
func (m metadata) holds(n *corev1.Node) bool {
	for k, v := range m.Labels {
		if n.Labels[k] != v {
			return false
		}
	}
	for k, v := range m.Annotations {
		if got, known := n.Annotations[k]; known != (v != nil) || known && got != v {
			return false
		}
	}
	return !slices.ContainsFunc(m.Finalizers, func(f string) bool { return !slices.Contains(n.Finalizers, f) })
}

func (k *Keeper) patch(ctx context.Context, n *corev1.Node, m metadata) error {
	doc, err := json.Marshal(map[string]metadata{"metadata": m})
	if err != nil {
		return err
	}
	_, err = k.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, doc, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil // another server was faster
	}
	return err
}
