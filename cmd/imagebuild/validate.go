package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/profile"
	"github.com/slipway/slipway/internal/profilefile"
)

func newValidateCmd() *cobra.Command {
	var paths []string
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "check profiles and report all that is wrong with them",
		Long: `validate reads profiles, each with the base that it extends, and reports every
finding with its file, line and column, what is wrong and what to do. A directory
stands for all *.yaml and *.yml files in it.`,
		Example: `  imagebuild validate
  imagebuild validate -p profiles/prod.yaml
  imagebuild validate -p profiles -o json | jq .findings`,
		Args: cli.Args(cobra.NoArgs),
	}
	cmd.Flags().StringArrayVarP(&paths, "profile", "p", []string{defaultProfile}, "profile or directory of profiles; may be repeated")
	format := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		files, err := profileFiles(paths)
		if err != nil {
			return err
		}
		report := validate(files)
		if *format == cli.JSON {
			if err := cli.WriteJSON(cmd.OutOrStdout(), report); err != nil {
				return err
			}
			return report.err()
		}
		for _, p := range report.Profiles {
			fmt.Fprintln(cmd.OutOrStdout(), p)
		}
		return report.err()
	}
	return cmd
}

// profileFiles replaces directories by the profiles in them.
func profileFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			files = append(files, path) // profilefile says what is wrong with it
			continue
		}
		within, err := yamlFiles(path)
		if err != nil {
			return nil, fmt.Errorf("reading directory: %w", err)
		}
		if len(within) == 0 {
			return nil, exit.With(exit.Usage, fmt.Errorf("there is no profile (*.yaml) in %s", path))
		}
		files = append(files, within...)
	}
	return files, nil
}

func yamlFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// validation is the result of validate.
type validation struct {
	Profiles []checkedProfile `json:"profiles"`
	Findings []diag.Finding   `json:"findings"`
}

// checkedProfile is one file that was validated.
type checkedProfile struct {
	File        string `json:"file"`
	OK          bool   `json:"ok"`
	Base        bool   `json:"base,omitempty"`
	Environment string `json:"environment,omitempty"`
	Substrate   string `json:"substrate,omitempty"`
	Status      string `json:"status,omitempty"`
	Nodes       int    `json:"nodes"`
}

// String is the line that a person reads.
func (c checkedProfile) String() string {
	switch {
	case !c.OK:
		return c.File + ": not ok"
	case c.Base:
		return c.File + ": ok (a base)"
	}
	nodes := "nodes"
	if c.Nodes == 1 {
		nodes = "node"
	}
	return fmt.Sprintf("%s: ok (%d %s, %s, %s)", c.File, c.Nodes, nodes, c.Substrate, c.Status)
}

// validate checks files one by one. What is wrong with a base is reported once,
// however many overlays extend it.
func validate(files []string) validation {
	out := validation{Profiles: []checkedProfile{}, Findings: []diag.Finding{}}
	for _, file := range files {
		p, err := profilefile.Check(file)
		out.Profiles = append(out.Profiles, checked(file, p))
		for _, f := range findingsOf(file, err) {
			if !slices.Contains(out.Findings, f) {
				out.Findings = append(out.Findings, f)
			}
		}
	}
	return out
}

func checked(file string, p *profile.Profile) checkedProfile {
	if p == nil {
		return checkedProfile{File: file}
	}
	c := &p.Cluster
	return checkedProfile{File: file, OK: true, Base: p.Base, Environment: c.Environment,
		Substrate: string(c.Substrate), Status: string(c.Status), Nodes: len(c.Nodes)}
}

// findingsOf turns a file that could not be read into a finding about it.
func findingsOf(file string, err error) []diag.Finding {
	var list *diag.Error
	var pathErr *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &list):
		return list.Findings
	case errors.As(err, &pathErr):
		file = pathErr.Path
	}
	return []diag.Finding{{Pos: diag.Pos{File: file}, Message: err.Error(), Hint: diag.HintOf(err)}}
}

func (v validation) err() error {
	if len(v.Findings) == 0 {
		return nil
	}
	return &diag.Error{Findings: v.Findings}
}
