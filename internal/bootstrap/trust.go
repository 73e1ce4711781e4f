package bootstrap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/bootstrap/ssh/hostkey"
)

// Shown is what a node shows as its identity.
type Shown struct {
	Node         string   `json:"node"`
	Address      string   `json:"address"`
	Fingerprints []string `json:"fingerprints"` // as the node's console shows them
	keys         []string
}

// Scan asks a node for its host keys. Whoever answers is not known yet: a person has
// to compare the fingerprints with those on the node's console.
func (s *Session) Scan(ctx context.Context, node string) (Shown, error) {
	out := Shown{Node: node, Address: s.addresses[node]}
	var err error
	if out.keys, err = hostkey.Scan(ctx, out.Address); err != nil {
		return out, err
	}
	for _, key := range out.keys {
		print, err := hostkey.Fingerprint(key)
		if err != nil {
			return out, fmt.Errorf("%s: %w", node, err)
		}
		out.Fingerprints = append(out.Fingerprints, print)
	}
	return out, nil
}

// Trust keeps what a node has shown. Other keys than those that are trusted already
// are refused unless replace is said.
func (s *Session) Trust(shown Shown, replace bool) error {
	if err := os.MkdirAll(s.State, 0o700); err != nil {
		return err
	}
	return hostkey.Trust(filepath.Join(s.State, hostkey.FileName), shown.Node, shown.Address, shown.keys, replace)
}
