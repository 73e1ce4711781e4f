package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

func newTrustCmd() *cobra.Command {
	var c common
	var l login
	var fingerprint string
	var replace bool
	cmd := &cobra.Command{
		Use:   "trust NODE",
		Short: "trust a node's host key after it was compared",
		Long: `trust shows the fingerprints of the host keys that a node shows, and keeps the keys
when you say that they are those on the node's console. A node that pxed installed has
reported its keys, and needs no trust.

--fingerprint says which one is expected, for scripts: nothing is asked then.`,
		Example: `  bootstrap trust n1 -p profiles/prod.yaml
  bootstrap trust n1 -p profiles/prod.yaml --fingerprint SHA256:...`,
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	c.add(cmd, "state")
	l.add(cmd)
	cmd.Flags().StringVar(&fingerprint, "fingerprint", "", "the fingerprint that one of the keys must have, as the console shows it")
	cmd.Flags().BoolVar(&replace, "replace", false, "also when another key was trusted before: the node was installed anew")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withSession(cmd, &c, &l, func(s *bootstrap.Session) error {
			if !known(s.Settings, args[0]) {
				return cli.UsageError(cmd, fmt.Errorf("the profile has no node %s", args[0]))
			}
			shown, err := s.Scan(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := confirm(cmd, shown, fingerprint); err != nil {
				return err
			}
			if err := s.Trust(shown, replace); err != nil {
				return err
			}
			if *c.output == cli.JSON {
				return cli.WriteJSON(cmd.OutOrStdout(), shown)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is trusted\n", shown.Node)
			return err
		})
	}
	return cmd
}

// confirm wants a word of a person, or the fingerprint that was expected.
func confirm(cmd *cobra.Command, shown bootstrap.Shown, expected string) error {
	if expected != "" {
		for _, f := range shown.Fingerprints {
			if strings.Contains(f, expected) {
				return nil
			}
		}
		return exit.With(exit.Refused, diag.WithHint(fmt.Errorf("%s at %s shows other keys: %s", shown.Node, shown.Address, strings.Join(shown.Fingerprints, ", ")),
			"look at the node's console; another machine may have its address"))
	}
	if !cli.IsTerminal(cmd.InOrStdin()) {
		return cli.UsageError(cmd, errors.New("nobody can be asked here; give --fingerprint"))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s at %s shows:\n", shown.Node, shown.Address)
	for _, f := range shown.Fingerprints {
		fmt.Fprintf(cmd.ErrOrStderr(), "  %s\n", f)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "does the node's console show the same? type its name to trust it: ")
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != shown.Node {
		return exit.With(exit.Refused, errors.New("nothing is trusted"))
	}
	return nil
}
