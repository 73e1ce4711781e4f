package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap"
	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

// armValidity is how long the machine may take to come to the installer.
const armValidity = time.Hour

func newRebuildCmd() *cobra.Command {
	var c common
	var l login
	var o bootstrap.Rebuild
	var data, sanitize string
	var abandon bool
	cmd := &cobra.Command{
		Use:   "rebuild NODE",
		Short: "bring a lost node back, any of them",
		Long: `rebuild takes one node out of the cluster and brings its machine back as the same
node: snapshot of etcd, drain if it lives, removal of exactly its member and of what
the cluster remembers of it, install by pxed, join, and the waits until every part is
whole again. The same command after a power cut goes on.

It refuses while that would cost the quorum of etcd or the last healthy copy of a
volume, while another node is down or being rebuilt, and for a node that is alive
unless --drain is said. --plan shows everything and changes nothing.

Data disks are kept unless --data wipe is said.`,
		Example: `  bootstrap rebuild n2 -p profiles/prod.yaml --plan
  bootstrap rebuild n2 -p profiles/prod.yaml`,
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	c.add(cmd, "build", "state", "secrets", "repo")
	l.add(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.Plan, "plan", false, "only show what would be done")
	f.BoolVar(&abandon, "abandon", false, "give up a rebuild that was begun: its run is ended in the ledger, and nothing else is done")
	f.BoolVar(&o.Drain, "drain", false, "the node is alive: move its pods first")
	f.StringVar(&data, "data", "", "all data disks: keep or wipe (default: as the profile says)")
	f.StringVar(&sanitize, "sanitize", "", "destroy old content of the system disk first: auto, discard or zero")
	f.StringSliceVar(&o.Order.Overwrite, "overwrite", nil, "serial number or WWN of a disk whose foreign content may be destroyed; may be repeated")
	f.DurationVar(&o.Order.Valid, "expires", armValidity, "how long the machine may take to come to the installer")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Node, o.Order.Data, o.Order.Sanitize = args[0], cluster.Policy(data), machine.Sanitize(sanitize)
		if err := checkOrder(o); err != nil {
			return cli.UsageError(cmd, err)
		}
		return withSession(cmd, &c, &l, func(s *bootstrap.Session) error {
			if !known(s.Settings, o.Node) {
				return cli.UsageError(cmd, fmt.Errorf("the profile has no node %s", o.Node))
			}
			if abandon {
				return s.Abandon(cmd.Context(), o.Node)
			}
			return runRebuild(cmd, s, o, *c.output)
		})
	}
	return cmd
}

func runRebuild(cmd *cobra.Command, s *bootstrap.Session, o bootstrap.Rebuild, format cli.Output) error {
	payload, err := material.OpenPayload(s.Settings)
	if err != nil {
		return err
	}
	n := narrator{w: cmd.OutOrStdout(), format: format, redact: s.Redactor.Text}
	did, err := s.Rebuild(cmd.Context(), payload, o, n.on)
	if err != nil {
		return err
	}
	words := fmt.Sprintf("%s is back, after %d steps", o.Node, did)
	if o.Plan {
		words = fmt.Sprintf("%d steps have something to do; nothing was changed", did)
	}
	return finish(cmd.OutOrStdout(), format, words)
}

func checkOrder(o bootstrap.Rebuild) error {
	switch {
	case o.Order.Data != "" && o.Order.Data != cluster.PolicyKeep && o.Order.Data != cluster.PolicyWipe:
		return fmt.Errorf("unknown policy of data disks %q (keep or wipe)", o.Order.Data)
	case o.Order.Valid < time.Second:
		return fmt.Errorf("%s is no time to wait for a machine", o.Order.Valid)
	}
	for _, known := range append(machine.Sanitize("").Values(), "") {
		if string(o.Order.Sanitize) == known {
			return nil
		}
	}
	return errors.New("unknown way to sanitize (auto, discard or zero)")
}
