package bootstrap

import (
	"context"
	"errors"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/secrets"
	"github.com/slipway/slipway/internal/sequence"
)

// Parity compares the repository with what runs, or offline with what the profile
// would install.
func Parity(ctx context.Context, s Settings, p *Payload, offline bool) (Verdicts, error) {
	session, err := Start(s, Login{}, Record{})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	r, err := s.reader(session.Redactor)
	if err != nil {
		return nil, err
	}
	got, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	var running map[string]map[string]any
	if !offline {
		running, err = session.running(ctx, p)
		if errors.Is(err, sequence.ErrUnseen) {
			return nil, diag.WithHint(errors.New("there is no cluster to compare with"), "--offline compares with the profile")
		}
		if err != nil {
			return nil, err
		}
	}
	return p.judge(s.Cluster, got.tree, running)
}

// reader is a reader of the repository. A checkout without secrets needs none.
func (s Settings) reader(redactor *secrets.Redactor) (*reader, error) {
	f, ids, err := s.unseal(redactor)
	if err != nil && s.Repo == "" {
		return nil, err
	}
	return &reader{settings: s, secrets: f, ids: ids}, nil
}

// Refusal is an error with all findings, for the exit code, or nil.
func (v Verdicts) Refusal() error { return exit.With(exit.Refused, v.Err()) }
