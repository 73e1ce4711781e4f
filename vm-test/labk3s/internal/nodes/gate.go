package nodes

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway/slipway/vm-test/labk3s/internal/nodepassword"
	"github.com/slipway/slipway/vm-test/labk3s/internal/supervisor"
)

// Gate decides by their passwords which nodes come in.
type Gate struct {
	own string // name of this server's node
	dir string // of its password

	mu       sync.Mutex
	client   kubernetes.Interface
	deferred string // our own node's password, let in before the cluster could be asked
}

// NewGate makes the gate of a server, which knows only its own node until Open.
func NewGate(own, passwordDir string) *Gate { return &Gate{own: own, dir: passwordDir} }

// Admit lets a node in. Before the API can be asked, a server takes its own word for
// its own node, by the password on its disk: its kubelet must run before the API can.
func (g *Gate) Admit(ctx context.Context, node, password string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.client != nil {
		return nodepassword.Ensure(ctx, g.client.CoreV1().Secrets(metav1.NamespaceSystem), node, password)
	}
	if node != g.own {
		return supervisor.ErrNotReady
	}
	known, err := nodepassword.Own(g.dir)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(known), []byte(password)) != 1 {
		return fmt.Errorf("unable to verify local node password: %w", nodepassword.ErrWrong)
	}
	g.deferred = password
	slog.Info("Password verified locally for node " + node)
	return nil
}

// Open lets the gate ask the API, and makes up for what it could not ask before: a
// wrong password of our own node is only told, in the log and as an event.
func (g *Gate) Open(ctx context.Context, c kubernetes.Interface) {
	g.mu.Lock()
	g.client = c
	password := g.deferred
	g.mu.Unlock()
	for password != "" {
		err := nodepassword.Ensure(ctx, c.CoreV1().Secrets(metav1.NamespaceSystem), g.own, password)
		if err == nil || errors.Is(err, nodepassword.ErrWrong) {
			g.tell(ctx, c, err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Second):
		}
	}
}

func (g *Gate) tell(ctx context.Context, c kubernetes.Interface, failed error) {
	kind, reason, message := corev1.EventTypeNormal, "NodePasswordValidationComplete", "Deferred node password secret validation complete"
	if failed != nil {
		kind, reason, message = corev1.EventTypeWarning, "NodePasswordValidationFailed", "Deferred node password secret validation failed: "+failed.Error()
		slog.Error(message)
	}
	now := metav1.Now()
	_, err := c.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: strings.ToLower(g.own) + ".", Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: g.own},
		Type:           kind, Reason: reason, Message: message, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "k3s-supervisor"},
	}, metav1.CreateOptions{})
	if err != nil {
		slog.Error("telling about a node password", "err", err)
	}
}
