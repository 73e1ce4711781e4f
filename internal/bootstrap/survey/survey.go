// Package survey asks the nodes what they are. All are asked at once; what they said
// is remembered until somebody has changed something there.
package survey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/payload/k3sconf"
)

// Node is where questions are asked.
type Node interface {
	Run(ctx context.Context, command string, stdin []byte) ([]byte, error)
	Get(ctx context.Context, path string) ([]byte, error)
}

// Survey remembers what nodes said. It is safe for concurrent use.
type Survey struct {
	nodes map[string]Node
	now   func() time.Time

	mu   sync.Mutex
	seen map[string]facts.Seen
}

// New makes a survey of nodes by name; now is our clock.
func New(nodes map[string]Node, now func() time.Time) *Survey {
	return &Survey{nodes: nodes, now: now, seen: map[string]facts.Seen{}}
}

// patience bounds the questions to one node; one under emulation takes seconds.
const patience = 2 * time.Minute

// Ask returns what the nodes said, in the order of the names. Those that are not
// remembered are asked, all at once. A node that could not be asked has an Err, and is
// asked again next time.
func (s *Survey) Ask(ctx context.Context, names ...string) []facts.Seen {
	out := make([]facts.Seen, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		if known, ok := s.known(name); ok {
			out[i] = known
			continue
		}
		all.Go(func() { out[i] = s.ask(ctx, name) })
	}
	all.Wait()
	return out
}

// Forget lets nodes be asked anew.
func (s *Survey) Forget(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		delete(s.seen, n)
	}
}

func (s *Survey) known(name string) (facts.Seen, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.seen[name]
	return seen, ok
}

func (s *Survey) ask(ctx context.Context, name string) facts.Seen {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seen := facts.Seen{Node: name}
	node := s.nodes[name]
	if node == nil {
		seen.Err = fmt.Errorf("%s is not known", name)
		return seen
	}
	if seen.Err = s.question(ctx, node, &seen); seen.Err != nil {
		return seen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[name] = seen
	return seen
}

func (s *Survey) question(ctx context.Context, node Node, seen *facts.Seen) error {
	out, err := node.Run(ctx, "slipway-node facts -o json", nil)
	if err != nil && (strings.Contains(err.Error(), "not found") || strings.Contains(err.Error(), "unknown command")) {
		return diag.WithHint(err, "that is no node of Slipway, or one of an older release: install it with the image of this build")
	}
	if err != nil {
		return err
	}
	if seen.Facts, err = facts.Read(out); err != nil {
		return fmt.Errorf("%s: %w", seen.Node, err)
	}
	if err := s.clock(ctx, node, seen); err != nil {
		return err
	}
	seen.DropIns = map[string][]byte{}
	for _, name := range seen.Facts.K3s.DropIns {
		data, err := node.Get(ctx, k3sconf.DropInDir+"/"+name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since
		}
		if err != nil {
			return err
		}
		seen.DropIns[name] = data
	}
	return nil
}

// clock asks for the time, with nothing else in between: the less time the question
// takes, the more it says.
func (s *Survey) clock(ctx context.Context, node Node, seen *facts.Seen) error {
	before := s.now()
	out, err := node.Run(ctx, "date +%s.%N", nil)
	after := s.now()
	if err != nil {
		return err
	}
	there, err := parseTime(out)
	if err != nil {
		return fmt.Errorf("%s: its clock says %.40q", seen.Node, out)
	}
	seen.Behind, seen.Ahead = there.Sub(after), there.Sub(before)
	return nil
}

func parseTime(out []byte) (time.Time, error) {
	seconds, err := strconv.ParseFloat(string(bytes.TrimSpace(out)), 64)
	if err != nil {
		return time.Time{}, err
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), nil
}
