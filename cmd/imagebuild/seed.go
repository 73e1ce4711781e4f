package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/imagebuild/seedfile"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/seed"
)

// seedFlags are the flags of seed.
type seedFlags struct {
	profile string
	node    string
	out     seedfile.Output
	print   bool
}

func newSeedCmd() *cobra.Command {
	var f seedFlags
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "write the cloud-init seed of one node",
		Long: `seed writes the NoCloud seed of one node: meta-data, user-data, network-config and
vendor-data. A build writes the same seeds; this command gives one without the
image, to look at, to attach to a virtual machine as a CD (iso), or to write onto
a stick (fat). The node takes it from any medium labelled CIDATA when its own disk
has no seed.

A directory or a file that holds another seed, or something else, is left alone
without --force.
The documents depend on the profile alone; a seed holds no secret.`,
		Example: `  imagebuild seed -p profiles/lab.yaml --node n1 --print
  imagebuild seed -p profiles/lab.yaml --node n1 -O seed-n1
  imagebuild seed -p profiles/dev.yaml --node n2 --format iso -O seed-n2.iso`,
		Args: cli.Args(cobra.NoArgs),
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.profile, "profile", "p", defaultProfile, "profile of the environment")
	fl.StringVar(&f.node, "node", "", "node whose seed is wanted")
	fl.StringVar(&f.out.Format, "format", "dir", "what to write: dir, iso or fat")
	fl.StringVarP(&f.out.Path, "out", "O", "", "directory or image to write")
	fl.BoolVar(&f.out.Force, "force", false, "write although something else is at that place")
	fl.BoolVar(&f.print, "print", false, "print the documents; with -O, also write them")
	output := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runSeed(cmd, f, *output) }
	return cmd
}

func runSeed(cmd *cobra.Command, f seedFlags, output cli.Output) error {
	if err := f.check(); err != nil {
		return cli.UsageError(cmd, err)
	}
	p, err := profilefile.Load(f.profile)
	if err != nil {
		return err
	}
	node, err := findNode(p.Cluster.Nodes, f.node)
	if err != nil {
		return err
	}
	docs, err := seed.For(p.Cluster, node)
	if err != nil {
		return err
	}
	if f.out.Path != "" {
		if err := f.out.Write(cmd.Context(), docs); err != nil {
			return err
		}
	}
	return reportSeed(cmd.OutOrStdout(), newSeedResult(node.Name, docs, f), output)
}

func (f seedFlags) check() error {
	switch {
	case f.node == "":
		return errors.New("no node given (--node)")
	case f.out.Path == "" && !f.print:
		return errors.New("nowhere to write to (-O), and --print not given")
	case !slices.Contains(seedfile.Formats(), f.out.Format):
		return fmt.Errorf("unknown format %q (dir, iso or fat)", f.out.Format)
	}
	return nil
}

func findNode(nodes []cluster.Node, name string) (cluster.Node, error) {
	var names []string
	for _, n := range nodes {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	err := fmt.Errorf("the profile has no node %q", name)
	return cluster.Node{}, exit.With(exit.Usage, diag.WithHint(err, "its nodes are "+strings.Join(names, ", ")))
}

// seedResult is what seed answers.
type seedResult struct {
	Node       string            `json:"node"`
	InstanceID string            `json:"instanceId"`
	Format     string            `json:"format,omitempty"`
	Path       string            `json:"path,omitempty"`
	Documents  map[string]string `json:"documents,omitempty"`
}

func newSeedResult(node string, docs seed.Documents, f seedFlags) seedResult {
	r := seedResult{Node: node, InstanceID: docs.InstanceID}
	if f.out.Path != "" {
		r.Format, r.Path = f.out.Format, f.out.Path
	}
	if f.print {
		r.Documents = map[string]string{
			seed.NameMetaData:      string(docs.MetaData),
			seed.NameUserData:      string(docs.UserData),
			seed.NameNetworkConfig: string(docs.NetworkConfig),
			seed.NameVendorData:    string(docs.VendorData),
		}
	}
	return r
}

func reportSeed(w io.Writer, r seedResult, output cli.Output) error {
	if output == cli.JSON {
		return cli.WriteJSON(w, r)
	}
	var b strings.Builder
	if r.Documents != nil {
		for _, name := range seed.Names() {
			fmt.Fprintf(&b, "# ---- %s\n%s", name, r.Documents[name])
		}
	}
	if r.Path != "" {
		fmt.Fprintf(&b, "seed of %s (instance %s): %s\n", r.Node, r.InstanceID, r.Path)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
