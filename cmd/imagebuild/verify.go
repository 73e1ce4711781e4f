package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/imagebuild/signkey"
	"github.com/slipway/slipway/internal/imagebuild/verify"
	"github.com/slipway/slipway/internal/imagebuild/verify/compare"
	"github.com/slipway/slipway/internal/progress"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	key     string
	rebuild bool
	build   buildFlags
	cache   string
}

func newVerifyCmd() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "examine a finished build, or build it again and compare",
		Long: `verify examines the build in DIR: the signature of its index, every byte of every
file, and whether what they hold agrees: both partition tables, the qcow2 with the
raw image, the squashfs with its verity tree, seeds, plan, bill of materials and
provenance. All problems are listed, with file, partition and byte where known.

--rebuild also builds again from the profile, takes nothing from earlier builds
but verified packages, and names the first difference.

Exit code 1 means that something is wrong with the build.`,
		Example: `  imagebuild verify out/lab
  imagebuild verify out/lab --key builder.pub
  imagebuild verify out/lab --rebuild -p profiles/lab.yaml`,
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	f.build.add(cmd)
	cmd.Flags().Lookup("node").Usage = "node whose seed the image carries, for --rebuild (default: the one that the build's plan names)"
	cmd.Flags().StringVar(&f.key, "key", "", "public key that must have signed (default: ~/.config/slipway/sign_ed25519.pub)")
	cmd.Flags().BoolVar(&f.rebuild, "rebuild", false, "build again from the profile (-p) and compare every byte")
	cmd.Flags().StringVar(&f.cache, "cache", "", "cache directory with the packages for --rebuild")
	output := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runVerify(cmd, args[0], f, *output) }
	return cmd
}

// verdict is what verify found.
type verdict struct {
	verify.Report
	Rebuilt    bool                `json:"rebuilt"` // whether it was built again
	Difference *compare.Difference `json:"difference,omitempty"`
}

func runVerify(cmd *cobra.Command, dir string, f verifyFlags, output cli.Output) error {
	key, err := trustedKey(f.key)
	if err != nil {
		return err
	}
	var v verdict
	err = cli.WithProgress(cmd.ErrOrStderr(), func(p progress.Reporter) error {
		v.Report, err = verify.Verify(cmd.Context(), verify.Options{Dir: dir, TrustedKey: key, Progress: p})
		if err != nil || !f.rebuild || !v.OK() {
			return err
		}
		v.Rebuilt = true
		v.Difference, err = compare.Reproduce(cmd.Context(), dir, func(ctx context.Context, out string) error { return f.again(ctx, dir, out, p) })
		return err
	})
	if err != nil {
		return err
	}
	if output == cli.JSON {
		err = cli.WriteJSON(cmd.OutOrStdout(), v)
	} else {
		printVerdict(cmd.OutOrStdout(), v)
	}
	return errors.Join(err, v.err())
}

// err is what is wrong with the build, as the error of the command.
func (v verdict) err() error {
	switch n := len(v.Problems); {
	case n == 1:
		return fmt.Errorf("%s has 1 problem", v.Dir)
	case n > 1:
		return fmt.Errorf("%s has %d problems", v.Dir, n)
	case v.Difference != nil:
		return fmt.Errorf("building %s again gives something else", v.Dir)
	}
	return nil
}

func printVerdict(w io.Writer, v verdict) {
	for _, p := range v.Problems {
		fmt.Fprintln(w, p)
	}
	if v.Difference != nil {
		fmt.Fprintf(w, "first difference: %s\n", v.Difference)
	}
	if v.err() != nil {
		return
	}
	fmt.Fprintf(w, "%s: %s, plan %s\n", v.Dir, v.Name, v.Plan.Short())
	fmt.Fprintf(w, "  signed by %s\n", v.Signer)
	fmt.Fprintf(w, "  %d files, %s, %d chunks, %d components: all as they were signed\n", v.Files, humanize.IBytes(uint64(v.Bytes)), v.Chunks, v.Packages)
	if v.Rebuilt {
		fmt.Fprintln(w, "  built again: identical")
	}
}

// trustedKey is the public key that must have signed a build: the one named, else
// that of this user's own signing key.
func trustedKey(path string) (ed25519.PublicKey, error) {
	if path != "" {
		key, err := signkey.LoadPublic(path)
		return key, exit.With(exit.Usage, err)
	}
	private, err := signkey.DefaultPath()
	if err != nil {
		return nil, err
	}
	key, err := signkey.LoadPublic(signkey.PublicPath(private))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("no key to trust: %w", err), "name the public key of who built it with --key; a key inside the build would prove nothing"))
	}
	return key, err
}

// node is the node whose seed the image of a build carries, as its plan says.
func node(dir string) (string, error) {
	p, err := verify.Plan(dir)
	if err != nil {
		return "", fmt.Errorf("reading %s of %s: %w", artifact.RolePlan, dir, err)
	}
	return p.Disk.Seed, nil
}
