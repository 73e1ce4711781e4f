// Package unitname says what systemd calls the unit of a path.
package unitname

import (
	"fmt"
	"strings"
)

// Of is the name of a path's unit, escaped as systemd.unit(5) says; kind is mount,
// service and the like.
func Of(path, kind string) string {
	var name strings.Builder
	for i, c := range []byte(strings.Trim(path, "/")) {
		switch {
		case c == '/':
			name.WriteByte('-')
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == ':', c == '.' && i > 0:
			name.WriteByte(c)
		default:
			fmt.Fprintf(&name, `\x%02x`, c)
		}
	}
	return name.String() + "." + kind
}
