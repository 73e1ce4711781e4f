package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/adopt"
	"github.com/slipway/slipway/internal/bootstrap/etcd"
	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/sequence"
)

// Adopt learns a living cluster and writes it into the ledger; of the cluster nothing
// is touched. It returns how many steps did something.
func (s *Session) Adopt(ctx context.Context, on func(sequence.Event)) (did int, err error) {
	lock, err := s.lock()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	steps := []sequence.Step{adopt.Step(s.sources(), known{s})}
	return sequence.Runner{Now: s.Now, On: on}.Run(ctx, steps)
}

// Forget drops the record of a cluster that is gone. ca is the digest of its CA, or
// the beginning of it that refusals show.
func (s *Session) Forget(ctx context.Context, ca string) error {
	b, err := s.book(ctx)
	if err != nil {
		return err
	}
	is, err := s.recorded(ctx)
	if err != nil {
		return err
	}
	ca = strings.TrimPrefix(ca, "sha256:")
	if is == nil || len(ca) < len(is.CA.Short()) || !strings.HasPrefix(is.CA.Hex(), ca) {
		return exit.With(exit.Refused, diag.WithHint(fmt.Errorf("the ledger knows no cluster with CA %s", ca), "the refusal of bootstrap up shows which one it knows"))
	}
	return b.ForgetCluster(ctx, s.Cluster.Environment, is.CA)
}

// sources are where the cluster is seen.
func (s *Session) sources() adopt.Sources {
	return adopt.Sources{
		Environment: s.Cluster.Environment, Name: s.Cluster.Name, Reader: kube.Open(s.open), Etcd: living{s, ""}, Now: s.Now,
		Nodes: func(ctx context.Context) []facts.Seen { return s.survey.Ask(ctx, s.names()...) },
	}
}

// known is the ledger as the step of adoption uses it.
type known struct{ s *Session }

func (k known) Known(ctx context.Context, _ string) (*identity.Cluster, error) {
	return k.s.recorded(ctx)
}

func (k known) PutCluster(ctx context.Context, c identity.Cluster) error {
	b, err := k.s.book(ctx)
	if err != nil {
		return err
	}
	return b.PutCluster(ctx, c)
}

// living is etcd by way of the first server that serves and is not the one to be
// left alone.
type living struct {
	s      *Session
	except string
}

func (l living) ask(ctx context.Context, question func(*etcd.Client) error) error {
	err := errors.New("no server answers through which etcd could be asked")
	for _, seen := range l.s.survey.Ask(ctx, l.s.servers()...) {
		if seen.Node == l.except || seen.Err != nil || seen.Facts.K3s.State != "active" {
			continue
		}
		var c *etcd.Client
		if c, err = l.s.etcd(ctx, seen.Node); err != nil {
			continue
		}
		err = question(c)
		c.Close()
		if err == nil {
			return nil
		}
	}
	return err
}

func (l living) State(ctx context.Context) (st member.State, err error) {
	err = l.ask(ctx, func(c *etcd.Client) error { st, err = c.State(ctx); return err })
	return st, err
}

func (l living) Remove(ctx context.Context, id member.ID) error {
	return l.ask(ctx, func(c *etcd.Client) error { return c.Remove(ctx, id) })
}

func (l living) Snapshot(ctx context.Context, path string, tell func(int64)) (out member.Snapshot, err error) {
	err = l.ask(ctx, func(c *etcd.Client) error { out, err = c.Snapshot(ctx, path, tell); return err })
	return out, err
}
