package profile

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/profile/yamltree"
)

func tooMany(n int) diag.Finding {
	return diag.Finding{Message: fmt.Sprintf("%d files where a base and an overlay belong", n)}
}

// checkScope reports every key of an overlay that belongs to the base.
func checkScope(r *reporter, root *yamltree.Node) {
	scopeOf(r, root, fieldsOf(reflect.TypeFor[cluster.Cluster]()), "")
}

func scopeOf(r *reporter, n *yamltree.Node, fields []field, path string) {
	if n.Kind != yamltree.Map {
		return
	}
	for _, e := range n.Entries {
		f, ok := find(fields, e.Key)
		at := yamltree.Key(path, e.Key)
		switch {
		case !ok, f.Env: // unknown keys are the decoder's to report
		case f.hasEnv():
			scopeOf(r, e.Value, f.fields(), at)
		default:
			r.at(e.Pos, at, "the key "+at+" belongs to the base, not to an overlay", overlayHint(path))
		}
	}
}

// overlayHint lists what an overlay may set, at the level of the mistake.
func overlayHint(path string) string {
	var within []string
	all := envPaths(fieldsOf(reflect.TypeFor[cluster.Cluster]()), "")
	for _, p := range all {
		if path != "" && strings.HasPrefix(p, path+".") {
			within = append(within, p)
		}
	}
	if len(within) == 0 {
		within = all
	}
	return "set it in the base for all environments; an overlay may set " + strings.Join(within, ", ")
}

// envPaths returns the topmost keys that an overlay may set.
func envPaths(fields []field, path string) []string {
	var out []string
	for _, f := range fields {
		at := yamltree.Key(path, f.Key)
		switch {
		case f.Env:
			out = append(out, at)
		case f.hasEnv():
			out = append(out, envPaths(f.fields(), at)...)
		}
	}
	return out
}
