package bootstrap

import (
	"context"
	"errors"

	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/sequence"
)

// Parity compares the repository with what runs, or offline with what the profile
// would install.
func Parity(ctx context.Context, s material.Settings, p *material.Payload, offline bool) (material.Verdicts, error) {
	session, err := Start(s, Login{}, Record{})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	r, err := s.Reader(session.Redactor)
	if err != nil {
		return nil, err
	}
	got, err := r.Read(ctx)
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
	return p.Judge(s.Cluster, got.Tree, running)
}
