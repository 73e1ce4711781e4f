package gitops

import (
	"regexp"
	"strings"
)

// variable is what Flux replaces after a build: ${NAME}, with := or :- and a default.
// $${NAME} is left as ${NAME}.
var variable = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(?::[=-]([^}]*))?\}`)

// substitute replaces variables in every string, when the Kustomization asks for it.
// A variable whose value comes from the cluster stays as it is written, so that
// whoever compares sees that it cannot be known here.
func substitute(v any, s spec) any {
	if len(s.Substitute) == 0 && len(s.From) == 0 {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = substitute(value, s)
		}
		return v
	case []any:
		for i := range v {
			v[i] = substitute(v[i], s)
		}
		return v
	case string:
		return variable.ReplaceAllStringFunc(v, func(found string) string { return s.value(found) })
	}
	return v
}

func (s spec) value(found string) string {
	if strings.HasPrefix(found, "$$") {
		return found[1:]
	}
	parts := variable.FindStringSubmatch(found)
	if value, ok := s.Substitute[parts[1]]; ok {
		return value
	}
	if len(s.From) > 0 {
		return found
	}
	return parts[2]
}
