// Package yamlform writes YAML that every reader takes for what was meant, whichever
// version of YAML it speaks.
package yamlform

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Marshal writes v as YAML after a header. Documents are made from typed values,
// never from text with holes; v may be a *yaml.Node where the order of keys counts.
func Marshal(header string, v any) ([]byte, error) {
	var node yaml.Node
	if err := node.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding YAML: %w", err)
	}
	quote(&node)
	out := bytes.NewBufferString(header)
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return nil, fmt.Errorf("encoding YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("encoding YAML: %w", err)
	}
	return out.Bytes(), nil
}

// plain is a text that no version of YAML takes for anything else, save for the
// words below. cloud-init, netplan and k3s read YAML 1.1, in which 52:54:00:12:34:56
// is a number in base 60, 0123 is octal, = is a type of its own, and so on;
// instead of knowing all of that, everything else goes between quotes.
var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./+-]*$`)

// block is a text that may be a literal block: printable lines, none of which
// begins the block with a space or ends in one.
var block = regexp.MustCompile(`^[!-~][ -~]*\n([ -~]*\n)*$`)

func quote(n *yaml.Node) {
	for _, child := range n.Content {
		quote(child)
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		return
	}
	switch {
	case plain.MatchString(n.Value) && !word(n.Value):
		n.Style = 0
	case block.MatchString(n.Value) && !strings.Contains(n.Value, " \n"):
		n.Style = yaml.LiteralStyle
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
}

// word reports whether s is a boolean or null in some version of YAML.
func word(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}
