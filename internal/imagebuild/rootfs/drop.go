package rootfs

import (
	"fmt"
	"path"
	"strings"
)

// Dropper decides which paths of the packages stay out of the image.
type Dropper struct{ patterns [][]string }

// NewDropper compiles patterns such as "usr/share/doc/**" or "etc/ssh/ssh_host_*".
// "*" matches within a path element; a final "**" matches the rest of the path,
// but not the directory before it.
func NewDropper(patterns []string) (*Dropper, error) {
	var d Dropper
	for _, p := range patterns {
		parts := strings.Split(strings.Trim(p, "/"), "/")
		for _, part := range parts {
			if _, err := path.Match(part, ""); err != nil {
				return nil, fmt.Errorf("pattern %q: %w", p, err)
			}
		}
		d.patterns = append(d.patterns, parts)
	}
	return &d, nil
}

// Drop reports whether name, in the form of Clean, stays out.
func (d *Dropper) Drop(name string) bool {
	parts := strings.Split(name, "/")
	for _, p := range d.patterns {
		if matches(p, parts) {
			return true
		}
	}
	return false
}

func matches(pattern, parts []string) bool {
	for i, p := range pattern {
		if p == "**" && i == len(pattern)-1 {
			return len(parts) > i
		}
		if i >= len(parts) {
			return false
		}
		if ok, _ := path.Match(p, parts[i]); !ok {
			return false
		}
	}
	return len(parts) == len(pattern)
}
