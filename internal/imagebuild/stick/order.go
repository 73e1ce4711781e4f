package stick

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install/bundle"
	"github.com/slipway/slipway/internal/seed"
)

// order makes the tickets, in the same way as pxed arms a node.
func (s *Stick) order() error {
	nodes, err := s.chosen()
	if err != nil {
		return err
	}
	s.spec = bundle.Spec{Build: s.opt.Dir, Others: map[string]bundle.Machine{}}
	for _, n := range s.opt.Cluster.Nodes {
		if !slices.ContainsFunc(nodes, func(c cluster.Node) bool { return c.Name == n.Name }) {
			s.spec.Others[n.Name] = machineOf(n)
		}
	}
	for _, n := range nodes {
		b, err := s.node(n)
		if err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
		// Who names one node has said which machine it is for; but see bundle.
		b.Machine.Any = len(s.opt.Nodes) > 0 && len(nodes) == 1
		s.spec.Nodes, s.Nodes = append(s.spec.Nodes, b), append(s.Nodes, b.Ticket)
	}
	return nil
}

func machineOf(n cluster.Node) bundle.Machine {
	m := bundle.Machine{Serial: n.Serial}
	for _, i := range n.Interfaces {
		m.MACs = append(m.MACs, string(i.MAC))
	}
	return m
}

func (s *Stick) node(n cluster.Node) (bundle.Node, error) {
	var id [32]byte
	if _, err := io.ReadFull(s.opt.Random, id[:]); err != nil {
		return bundle.Node{}, fmt.Errorf("making a ticket: %w", err)
	}
	key, err := artifact.FormatKey(s.opt.Key, "")
	if err != nil {
		return bundle.Node{}, err
	}
	docs, err := seedOf(s.opt.Cluster, n)
	o := s.opt.Order
	return bundle.Node{
		Machine: machineOf(n), Seed: docs,
		Ticket: machine.Ticket{
			Format: machine.TicketFormat, ID: hex.EncodeToString(id[:]), Node: n.Name, Cluster: s.opt.Cluster.Name,
			Expires: s.opt.Now.Add(o.Valid).UTC(), Index: s.image.Digest, Key: strings.TrimSpace(key),
			System: n.System, Data: machine.DataOrders(n, o.Data), Overwrite: o.Overwrite, Sanitize: o.Sanitize,
		},
	}, err
}

func seedOf(c cluster.Cluster, n cluster.Node) (machine.Seed, error) {
	docs, err := seed.For(c, n)
	if err != nil {
		return nil, err
	}
	tree, err := docs.Tree()
	if err != nil {
		return nil, err
	}
	out := machine.Seed{}
	for e := range tree.All() {
		out[e.Path] = string(e.Content)
	}
	return out, nil
}
