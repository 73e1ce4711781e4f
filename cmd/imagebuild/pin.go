package main

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/pinning"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/progress"
)

func newPinCmd() *cobra.Command {
	var profile, cacheDir string
	var check bool
	cmd := &cobra.Command{
		Use:   "pin -p PROFILE",
		Short: "fix every outside input by digest in the profile's lock",
		Long: `pin resolves what the profile wants against the Debian archive of today, with the
archive's signature verified, and against the projects' releases, and writes the
lock beside the profile (profiles/lab.lock for profiles/lab.yaml). It prints what
changed. When no input changed, the lock stays as it is.

An input whose source cannot be reached is written as unpinned, with the reason;
then the exit code is 1, and what needs that input will refuse to run.

With --check nothing is resolved, written or asked of the network: the exit code
tells whether the lock has what the profile wants (0) or not (2).`,
		Args: cli.Args(cobra.NoArgs),
	}
	cmd.Flags().StringVarP(&profile, "profile", "p", defaultProfile, "profile of the environment")
	cmd.Flags().BoolVar(&check, "check", false, "only compare the lock with the profile")
	cacheFlag(cmd, &cacheDir)
	output := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p, err := profilefile.Load(profile)
		if err != nil {
			return err
		}
		if check {
			return checkPins(cmd.OutOrStdout(), profile, pinning.Check(profile, &p.Cluster), *output)
		}
		cache, err := openCache(cacheDir)
		if err != nil {
			return err
		}
		var res pinning.Result
		err = cli.WithProgress(cmd.ErrOrStderr(), func(report progress.Reporter) (err error) {
			res, err = pinning.Pin(cmd.Context(), pinning.Options{Profile: profile, Cluster: &p.Cluster, Cache: cache, Report: report, Getenv: os.Getenv})
			return err
		})
		if err != nil {
			return err
		}
		if err := printPins(cmd.OutOrStdout(), res, *output); err != nil {
			return err
		}
		if n := res.Failed(); n > 0 {
			return diag.WithHint(fmt.Errorf("%d inputs could not be had and stay unpinned", n), "run it again where they can be reached; everything else is pinned")
		}
		return nil
	}
	return cmd
}

func checkPins(w io.Writer, profile string, err error, output cli.Output) error {
	if output == cli.JSON {
		if werr := cli.WriteJSON(w, struct {
			Current bool `json:"current"`
		}{err == nil}); werr != nil {
			return werr
		}
		return err
	}
	if err == nil {
		fmt.Fprintf(w, "the lock has everything that %s wants\n", profile)
	}
	return err
}

func printPins(w io.Writer, res pinning.Result, output cli.Output) error {
	if output == cli.JSON {
		return cli.WriteJSON(w, res)
	}
	if res.Replaced != "" {
		fmt.Fprintf(w, "the old lock could not be read and was replaced: %s\n", res.Replaced)
	}
	set := ""
	for _, c := range res.Changes {
		if c.Set != set {
			set = c.Set
			fmt.Fprintf(w, "%s:\n", set)
		}
		fmt.Fprintf(w, "  %s\n", c)
	}
	for _, a := range res.Unpinned {
		fmt.Fprintf(w, "unpinned: %s %s: %s\n", a.Name, a.Version, cmp.Or(a.Error, a.Reason))
	}
	verdict := "is current"
	if res.Written {
		verdict = "written"
	}
	_, err := fmt.Fprintf(w, "%s %s\n", res.Lock, verdict)
	return err
}
