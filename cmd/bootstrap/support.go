package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap"
	"github.com/slipway/slipway/internal/bootstrap/support"
	"github.com/slipway/slipway/internal/cli"
)

func newSupportCmd() *cobra.Command {
	var c common
	var l login
	var file string
	cmd := &cobra.Command{
		Use:   "support [NODE...]",
		Short: "collect logs, events and versions, without secrets",
		Long: `support writes an archive with what the nodes, the cluster and bootstrap know:
logs, units, events, objects, versions, configuration. Secrets are not read where that
can be avoided, and taken out where it cannot: those of the secrets file, and whatever
has the form of one. Look into it before you pass it on.

What cannot be read is listed in missing.txt. Without NODE all nodes are asked.`,
		Example: `  bootstrap support -p profiles/prod.yaml
  bootstrap support n2 -p profiles/prod.yaml -O n2.tar.gz`,
	}
	c.add(cmd, "state", "secrets")
	l.add(cmd)
	cmd.Flags().StringVarP(&file, "out", "O", "", "file to write (default slipway-support-ENVIRONMENT-TIME.tar.gz)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withSession(cmd, &c, &l, func(s *bootstrap.Session) error {
			for _, node := range args {
				if !known(s.Settings, node) {
					return cli.UsageError(cmd, fmt.Errorf("the profile has no node %s", node))
				}
			}
			if file == "" {
				file = fmt.Sprintf("slipway-support-%s-%s.tar.gz", s.Cluster.Environment, s.Now().UTC().Format("20060102-150405"))
			}
			r, err := writeSupport(cmd, s, file, args)
			if err != nil {
				return err
			}
			return printSupport(cmd, *c.output, file, r)
		})
	}
	return cmd
}

// writeSupport writes to a temporary name; an archive that is there is whole.
func writeSupport(cmd *cobra.Command, s *bootstrap.Session, file string, nodes []string) (r support.Result, err error) {
	if _, err := os.Stat(file); err == nil {
		return r, cli.UsageError(cmd, fmt.Errorf("%s is there already", file))
	}
	f, err := renameio.NewPendingFile(file, renameio.WithStaticPermissions(0o600), renameio.WithTempDir(filepath.Dir(file)))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }()
	start := time.Now()
	r, err = s.Support(cmd.Context(), f, nodes, nil, func(words string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%5s  %s\n", short(time.Since(start)), words)
	})
	if err != nil {
		return r, err
	}
	return r, f.CloseAtomicallyReplace()
}

func printSupport(cmd *cobra.Command, format cli.Output, file string, r support.Result) error {
	if format == cli.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), struct {
			File string `json:"file"`
			support.Result
		}{file, r})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d files, %d sources could not be read\n", file, r.Files, len(r.Missing))
	return context.Cause(cmd.Context())
}
