package flux

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/sequence"
)

// Proof is what came of reading the repository as Flux will: with its credentials,
// and opening with its key what is encrypted.
type Proof struct {
	Revision    string         // such as main@sha1:...
	Opened      []string       // encrypted files, each opened
	Undecrypted []diag.Finding // Kustomizations that would apply cipher text
}

// Prove reads the repository. What cannot be reached, and what the key does not open,
// is an error. What was opened stays in memory and in there.
type Prove func(context.Context) (Proof, error)

// Proven is the step that reads the repository before anything is changed. A
// repository with nothing encrypted proves no key and needs none.
func Proven(prove Prove) sequence.Step {
	return sequence.Step{
		Layer: layer, Name: "the key opens the repository",
		Observe: func(ctx context.Context) ([]sequence.Change, error) {
			p, err := prove(ctx)
			if err != nil {
				return nil, err
			}
			return nil, p.judge()
		},
	}
}

func (p Proof) judge() error {
	if len(p.Undecrypted) == 0 {
		return nil
	}
	var lines []string
	for _, f := range p.Undecrypted {
		lines = append(lines, fmt.Sprintf("%s: %s", f.Pos, f.Message))
	}
	err := fmt.Errorf("at %s Flux would apply what is encrypted as it is: %s", p.Revision, strings.Join(lines, "; "))
	return exit.With(exit.Refused, diag.WithHint(err, p.Undecrypted[0].Hint))
}
