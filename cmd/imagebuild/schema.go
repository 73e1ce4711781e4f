package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/profile"
)

func newSchemaCmd() *cobra.Command {
	var check string
	var reference bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "print the JSON Schema of profiles, or their reference",
		Long: `schema prints the JSON Schema (2020-12) of profiles, made from the types of this
program. Editors that know the yaml-language-server comment at the top of a
profile complete keys and show what they mean. With --reference it prints the
reference as Markdown instead.`,
		Example: `  imagebuild schema > profiles/schema.json
  imagebuild schema --check profiles/schema.json
  imagebuild schema --reference > docs/PROFILE.md`,
		Args: cli.Args(cobra.NoArgs),
	}
	cmd.Flags().StringVar(&check, "check", "", "compare with this `file` instead of printing")
	cmd.Flags().BoolVar(&reference, "reference", false, "the reference as Markdown instead of the schema")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		want, err := profile.Schema()
		command := "imagebuild schema"
		if reference {
			want, err = profile.Reference(), nil
			command += " --reference"
		}
		if err != nil {
			return err
		}
		if check == "" {
			_, err = cmd.OutOrStdout().Write(want)
			return err
		}
		return compareGenerated(check, want, command)
	}
	return cmd
}

// compareGenerated fails when file does not hold what the generator gives now.
func compareGenerated(file string, want []byte, command string) error {
	hint := "regenerate it: " + command + " > " + file
	have, err := os.ReadFile(file)
	if err != nil {
		return diag.WithHint(fmt.Errorf("comparing: %w", err), hint)
	}
	if bytes.Equal(have, want) {
		return nil
	}
	line := 1
	for i := range min(len(have), len(want)) {
		if have[i] != want[i] {
			break
		}
		if have[i] == '\n' {
			line++
		}
	}
	return diag.WithHint(fmt.Errorf("%s:%d: differs from what the types say", file, line), hint)
}
