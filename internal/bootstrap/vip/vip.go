// Package vip lets the virtual address of the Kubernetes API move between the servers:
// keepalived, which is in the image, is configured on each and started, and then exactly
// one server holds the address. Where the profile has none, what was there is removed.
package vip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/payload/vip"
	"github.com/slipway/slipway/internal/sequence"
)

const layer = "vip"

// Deadlines: keepalived needs seconds; the address waits for an API server that is
// ready.
const (
	configLimit = 2 * time.Minute
	holderLimit = 10 * time.Minute
)

// Node is a node to work on, as root.
type Node interface {
	Run(ctx context.Context, command string, stdin []byte) ([]byte, error)
	Put(ctx context.Context, path string, perm fs.FileMode, data []byte) error
	Get(ctx context.Context, path string) ([]byte, error)
}

// Survey asks nodes what they are.
type Survey interface {
	Ask(ctx context.Context, names ...string) []facts.Seen
}

// Options are what the steps need.
type Options struct {
	Cluster cluster.Cluster
	Node    func(name string) Node
	Survey  Survey
	Pause   func(context.Context) error
}

// Steps configure one server after the other, then wait until one holds the address.
func Steps(o Options) []sequence.Step {
	var steps []sequence.Step
	for _, n := range o.Cluster.Servers() {
		steps = append(steps, configured(o, n.Name))
	}
	if !o.Cluster.Network.APIVIP.IsValid() {
		return steps
	}
	address := o.Cluster.Network.APIVIP.String()
	return append(steps, sequence.Until(sequence.Step{
		Layer: layer, Name: "one server holds " + address, Deadline: holderLimit,
		Blind: []sequence.Change{{Verb: sequence.Await, What: address, Why: "keepalived is not configured yet"}},
	}, o.held, o.Pause))
}

// standing is what a server has of it.
type standing struct {
	cluster cluster.Cluster
	files   []written // that differ
	stale   bool      // there is a configuration, and there shall be none
	state   string    // of the unit
}

type written struct {
	path    string
	perm    fs.FileMode
	content []byte
	fresh   bool // there was none
}

func configured(o Options, name string) sequence.Step {
	return sequence.Of(sequence.Step{Layer: layer, Name: "keepalived is as the profile has it", Node: name, Deadline: configLimit},
		func(ctx context.Context) (standing, error) { return o.stand(ctx, name) },
		func(s standing) ([]sequence.Change, error) { return plan(o.Cluster, s, name), nil },
		func(ctx context.Context, s standing, tell sequence.Tell) error {
			return o.configure(ctx, s, name, tell)
		})
}

func (o Options) stand(ctx context.Context, name string) (standing, error) {
	c, err := o.addressed(ctx)
	if err != nil {
		return standing{}, err
	}
	s := standing{cluster: c}
	var server cluster.Node
	for _, n := range c.Nodes {
		if n.Name == name {
			server = n
		}
	}
	tree, err := vip.Files(c, server)
	if err != nil {
		return s, err
	}
	for e := range tree.All() {
		if !e.Mode.IsRegular() {
			continue
		}
		w := written{path: "/" + e.Path, perm: e.Mode.Perm(), content: e.Content}
		now, err := o.Node(name).Get(ctx, w.path)
		w.fresh = errors.Is(err, fs.ErrNotExist)
		if err != nil && !w.fresh {
			return s, err
		}
		if w.fresh || !bytes.Equal(now, w.content) {
			s.files = append(s.files, w)
		}
	}
	if !vip.Wanted(c, server) {
		_, err := o.Node(name).Get(ctx, configPath())
		if s.stale = err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
		return s, nil
	}
	out, err := o.Node(name).Run(ctx, "systemctl show --property=ActiveState --value "+vip.Unit, nil)
	s.state = strings.TrimSpace(string(out))
	return s, err
}

func configPath() string { return path.Join(vip.OnNode().Dir, vip.ConfigName) }

// addressed is the cluster with the addresses that nodes have now.
func (o Options) addressed(ctx context.Context) (cluster.Cluster, error) {
	var names []string
	for _, n := range o.Cluster.Nodes {
		names = append(names, n.Name)
	}
	seen := o.Survey.Ask(ctx, names...)
	return k3sconf.Addressed(o.Cluster, facts.Found(o.Cluster, seen))
}

func plan(c cluster.Cluster, s standing, name string) []sequence.Change {
	var changes []sequence.Change
	for _, w := range s.files {
		change := sequence.Change{Verb: sequence.Alter, What: w.path, Why: "it differs from the profile"}
		if w.fresh {
			change = sequence.Change{Verb: sequence.Create, What: w.path, Why: "it is not there"}
		}
		changes = append(changes, change)
	}
	switch {
	case s.stale:
		changes = append(changes, sequence.Change{Verb: sequence.Alter, What: configPath(), Why: "the profile has no virtual address: keepalived stops"})
	case c.Network.APIVIP.IsValid() && s.state != "active":
		changes = append(changes, sequence.Change{Verb: sequence.Create, What: vip.Unit + " on " + name, Why: "it is " + s.state})
	}
	return changes
}

// configure writes the files and lets keepalived read them. The script comes before
// the configuration that names it.
func (o Options) configure(ctx context.Context, s standing, name string, tell sequence.Tell) error {
	node := o.Node(name)
	if s.stale {
		_, err := node.Run(ctx, fmt.Sprintf("systemctl stop %s; rm -f %s", vip.Unit, configPath()), nil)
		return err
	}
	for _, w := range s.files {
		tell("writing " + w.path)
		if err := node.Put(ctx, w.path, w.perm, w.content); err != nil {
			return err
		}
	}
	tell("starting " + vip.Unit)
	for {
		if _, err := node.Run(ctx, "systemctl reset-failed "+vip.Unit+" 2>/dev/null; systemctl reload-or-restart "+vip.Unit, nil); err != nil {
			return fmt.Errorf("starting %s: %w", vip.Unit, err)
		}
		out, err := node.Run(ctx, "systemctl show --property=ActiveState --value "+vip.Unit, nil)
		if state := strings.TrimSpace(string(out)); err != nil || state == "active" {
			return err
		} else if tell(vip.Unit + " is " + state); state == "inactive" {
			return fmt.Errorf("%s was passed over: a condition of it does not hold; is the node ready? see: slipway-node ready", vip.Unit)
		}
		if err := o.Pause(ctx); err != nil {
			return err
		}
	}
}

// held wants exactly one server to have the address.
func (o Options) held(ctx context.Context) ([]sequence.Change, error) {
	address := o.Cluster.Network.APIVIP.String()
	var holders []string
	for _, n := range o.Cluster.Servers() {
		out, err := o.Node(n.Name).Run(ctx, "ip -oneline -4 address show to "+address+"/32", nil)
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(out)) > 0 {
			holders = append(holders, n.Name)
		}
	}
	switch len(holders) {
	case 1:
		return nil, nil
	case 0:
		return []sequence.Change{{Verb: sequence.Await, What: address, Why: "no server holds it: is an API server ready?"}}, nil
	}
	return []sequence.Change{{Verb: sequence.Await, What: address, Why: strings.Join(holders, " and ") + " hold it at once: do they reach each other by VRRP (IP protocol 112)?"}}, nil
}
