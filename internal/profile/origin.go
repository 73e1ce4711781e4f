package profile

import (
	"strings"

	"github.com/slipway/slipway/internal/diag"
)

// origin is a value of the merged profile and where it was written. A zero
// place means a default. List and mapping heads have no text.
type origin struct {
	path string
	text string
	leaf bool
	pos  diag.Pos
}

// origins keeps them in the order of the format.
type origins struct {
	list   []origin
	byPath map[string]origin
}

func newOrigins() *origins { return &origins{byPath: map[string]origin{}} }

func (o *origins) add(v origin) {
	o.list = append(o.list, v)
	o.byPath[v.path] = v
}

// near is the place of the value at path, or of the closest thing around it
// that stands in a file.
func (o *origins) near(path string) diag.Pos {
	for {
		if v, ok := o.byPath[path]; ok && v.pos.File != "" {
			return v.pos
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return o.byPath[""].pos
		}
		path = path[:i]
	}
}
