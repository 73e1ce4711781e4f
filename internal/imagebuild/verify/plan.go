package verify

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/plan"
)

// Plan reads the plan of the build in dir, without checking anything.
func Plan(dir string) (plan.Plan, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return plan.Plan{}, err
	}
	defer root.Close()
	data, err := readSmall(root, artifact.IndexName, artifact.MaxIndexSize)
	if err != nil {
		return plan.Plan{}, err
	}
	x, err := artifact.Decode(data)
	if err != nil {
		return plan.Plan{}, err
	}
	f, ok := x.One(artifact.RolePlan)
	if !ok {
		return plan.Plan{}, errors.New("the build has no plan")
	}
	if data, err = readSmall(root, f.Name, maxDocument); err != nil {
		return plan.Plan{}, err
	}
	var p plan.Plan
	return p, json.Unmarshal(data, &p)
}
