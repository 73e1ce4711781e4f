package nodepassword

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
)

// field is where the Secret has the hash.
const field = "hash"

// SecretName is the name of a node's Secret; it is in lower case whatever the node's.
func SecretName(node string) string { return strings.ToLower(node + ".node-password.k3s") }

// Secrets are the Secrets of namespace kube-system.
type Secrets typed.SecretInterface

// Ensure compares a node's password with what the cluster remembers, and remembers
// it when the node is new. ErrWrong is wrapped when it is another's.
func Ensure(ctx context.Context, s Secrets, node, password string) error {
	known, err := s.Get(ctx, SecretName(node), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		known, err = create(ctx, s, node, password)
	}
	if err != nil {
		return fmt.Errorf("node password of %s: %w", node, err)
	}
	if err := Verify(string(known.Data[field]), password); err != nil {
		return fmt.Errorf("unable to verify hash for node '%s': %w", node, err)
	}
	return nil
}

// create makes the Secret. When another server was faster, its one counts.
func create(ctx context.Context, s Secrets, node, password string) (*corev1.Secret, error) {
	hash, err := Hash(password)
	if err != nil {
		return nil, err
	}
	immutable := true
	made, err := s.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SecretName(node), Namespace: metav1.NamespaceSystem},
		Immutable:  &immutable,
		Data:       map[string][]byte{field: []byte(hash)},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return s.Get(ctx, SecretName(node), metav1.GetOptions{})
	}
	return made, err
}

// Forget removes what the cluster remembers of a node.
func Forget(ctx context.Context, s Secrets, node string) error {
	err := s.Delete(ctx, SecretName(node), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
