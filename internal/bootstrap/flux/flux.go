// Package flux puts Flux into the cluster and points it at the repository. The order
// matters:
//
//   - the key is proven first, by opening what the repository has encrypted: a wrong one
//     would show itself only after the hand-over, in the middle of a reconciliation;
//   - components with their definitions, then the secrets, then the git source, which
//     is harmless: it downloads and applies nothing;
//   - the Kustomization last and apart (Sync). With it Flux begins to change the
//     cluster, so that the parity gate stands before it.
package flux

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

const layer = "flux"

// Wanted is something that the cluster shall have: what is missing, and how to make it.
type Wanted interface {
	Changes(context.Context) ([]sequence.Change, error)
	Apply(context.Context, sequence.Tell) error
}

// Flux is Flux as it is wanted.
type Flux struct {
	Version    string           // for people
	Objects    []map[string]any // of the components, with their definitions
	Components Wanted           // the same, in the cluster
	Secrets    Wanted           // the age key, and what git asks for
	Source     Wanted           // the GitRepository
	Sync       Wanted           // the Kustomization
}

// Install are the steps up to and with the git source.
func Install(f Flux) []sequence.Step {
	return []sequence.Step{
		{
			Layer: layer, Name: "components " + f.Version + " are installed", Deadline: 5 * time.Minute,
			Blind: create("components of Flux " + f.Version),
			Observe: func(ctx context.Context) ([]sequence.Change, error) {
				if err := complete(f); err != nil {
					return nil, err
				}
				return f.Components.Changes(ctx)
			},
			Do: f.Components.Apply,
		},
		{
			Layer: layer, Name: "its secrets are there", Deadline: time.Minute,
			Blind: create("secrets of Flux"), Observe: f.Secrets.Changes, Do: f.Secrets.Apply,
		},
		{
			Layer: layer, Name: "the repository is its source", Deadline: time.Minute,
			Blind: create("GitRepository"), Observe: f.Source.Changes, Do: f.Source.Apply,
		},
	}
}

// Sync is the step with which Flux begins to apply the repository.
func Sync(f Flux) sequence.Step {
	return sequence.Step{
		Layer: layer, Name: "it applies the repository", Deadline: time.Minute,
		Blind: create("Kustomization"), Observe: f.Sync.Changes, Do: f.Sync.Apply,
	}
}

func create(what string) []sequence.Change {
	return []sequence.Change{{Verb: sequence.Create, What: what, Why: "there is no cluster yet"}}
}

// required are the kinds that the hand-over needs.
var required = []string{"GitRepository", "Kustomization", "HelmRelease", "HelmChart"}

// complete refuses components without which Flux could not own what was installed.
func complete(f Flux) error {
	lacking := slices.Clone(required)
	for _, o := range f.Objects {
		if object.Definition(o) && strings.HasSuffix(object.Text(o, "spec", "group"), ".toolkit.fluxcd.io") {
			kind := object.Text(o, "spec", "names", "kind")
			lacking = slices.DeleteFunc(lacking, func(k string) bool { return k == kind })
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	err := fmt.Errorf("the build's components of Flux %s do not define %s", f.Version, strings.Join(lacking, ", "))
	return exit.With(exit.Refused, diag.WithHint(err, "pin and build again: source-, kustomize- and helm-controller are needed"))
}
