package volume

import (
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/payload/object"
)

// Missing is a volume that does not have all of its copies.
type Missing struct {
	Volume string
	Why    string
}

// Degraded are the attached volumes that Longhorn does not call healthy. Detached
// ones cannot be built up again before somebody attaches them; resting is how many
// of those lack a copy.
func (s Storage) Degraded(ready func(string) bool) (missing []Missing, resting int) {
	for _, v := range s.Volumes {
		name := object.Of(v).Name
		good, building := 0, []string(nil)
		copies := s.copies(name)
		for _, r := range copies {
			if s.unusable(r, ready) == "" {
				good++
			} else if nodeOf(r) != "" {
				building = append(building, nodeOf(r)+" "+s.built(r))
			}
		}
		wanted := int(object.Int(v, "spec", "numberOfReplicas"))
		switch {
		case object.Text(v, "status", "state") != "attached":
			if good < wanted && !empty(v, copies) {
				resting++
			}
		case object.Text(v, "status", "robustness") != "healthy":
			why := fmt.Sprintf("%s, %d of %d replicas are whole", object.Text(v, "status", "robustness"), good, wanted)
			if len(building) > 0 {
				why += "; " + strings.Join(building, ", ")
			}
			missing = append(missing, Missing{name, why})
		}
	}
	return missing, resting
}

// built is how far a replica has been built.
func (s Storage) built(r map[string]any) string {
	for _, e := range s.Engines {
		if object.Text(e, "spec", "volumeName") != object.Text(r, "spec", "volumeName") {
			continue
		}
		statuses, _ := object.At(e, "status", "rebuildStatus").(map[string]any)
		for address, one := range statuses {
			status, _ := one.(map[string]any)
			if ip := object.Text(r, "status", "storageIP"); ip != "" && strings.Contains(address, "//"+ip+":") && object.At(status, "isRebuilding") == true {
				return fmt.Sprintf("%d %%", object.Int(status, "progress"))
			}
		}
	}
	return "not whole"
}
