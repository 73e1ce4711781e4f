package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/pxed/client"
	"github.com/slipway/slipway/internal/pxed/desk"
)

func newMembersCmd() *cobra.Command {
	cmd := answer(&cobra.Command{
		Use:   "members",
		Short: "list those that hold the ledger together",
		Long: `members lists the pxed that hold the ledger: how each is reached, whether it votes,
which one leads, and whether it answers the one that is asked. More than half of the
voting ones have to run, or nothing can be written.`,
		Example: "  pxed members\n  pxed members remove 192.168.20.7:9000",
		Args:    cli.Args(cobra.NoArgs),
	}, func(ctx context.Context, c *client.Client, _ []string) ([]desk.Member, error) { return c.Members(ctx) }, printMembers)
	cmd.AddCommand(newRemoveMemberCmd())
	return cmd
}

func newRemoveMemberCmd() *cobra.Command {
	return answer(&cobra.Command{
		Use:   "remove ADDRESS",
		Short: "take a member that is gone for good out of the ledger",
		Long: `remove takes a member that does not come back out of the ledger, so that it no
longer counts for the majority. One that is alive is refused: stop its pxed first, and
ask another member to remove it; and so is a removal after which too few of the voting
members would answer. A removed member joins again with an empty directory.`,
		Example: "  pxed members remove 192.168.20.7:9000",
		Args:    cli.Args(cobra.ExactArgs(1)),
	}, func(ctx context.Context, c *client.Client, args []string) ([]desk.Member, error) {
		return c.RemoveMember(ctx, args[0])
	}, printMembers)
}

func printMembers(w io.Writer, list []desk.Member) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MEMBER\tROLE\tLEADS\tANSWERS")
	for _, m := range list {
		address := m.Address
		if strings.HasPrefix(address, "@") {
			address = "this machine only"
		}
		if m.Self {
			address += " (the one asked)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", address, m.Role, yes(m.Leader), yes(m.Answers))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, outlook(list))
	return err
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// outlook says how many members may still die.
func outlook(list []desk.Member) string {
	voters, answer := 0, 0
	for _, m := range list {
		if m.Role == "voter" {
			voters++
			if m.Answers {
				answer++
			}
		}
	}
	spare := answer - voters/2 - 1
	switch {
	case len(list) == 1:
		return "one member holds the ledger by itself"
	case spare <= 0:
		return fmt.Sprintf("%d of %d voting members answer: if one more dies, nothing can be written", answer, voters)
	}
	return fmt.Sprintf("%d of %d voting members answer: %d more may die", answer, voters, spare)
}
