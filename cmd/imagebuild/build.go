package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/imagebuild"
	"github.com/slipway/slipway/internal/imagebuild/signkey"
	"github.com/slipway/slipway/internal/plan"
	"github.com/slipway/slipway/internal/progress"
)

// buildFlags are what plan and build have in common.
type buildFlags struct{ request imagebuild.Request }

func (f *buildFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&f.request.Profile, "profile", "p", defaultProfile, "profile of the environment")
	fl.StringVar(&f.request.Lock, "lock", "", "lock with the pinned inputs (default: beside the profile, .lock)")
	fl.StringVar(&f.request.Node, "node", "", "node whose seed the image carries (default: none, CIDATA stays empty)")
	fl.StringVar(&f.request.NodeInit, "nodeinit", "", "nodeinit binary (default: beside this program)")
}

const defaultProfile = "profiles/lab.yaml"

func newBuildCmd() *cobra.Command {
	var flags buildFlags
	var out, cache, key string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "build the image and seeds of a profile",
		Long: `build makes a bootable disk image, its compressed and qcow2 forms, the files for
network boot, a cloud-init seed for each node, a bill of materials and a
provenance, and signs an index over all of them.

The same plan gives the same bytes, whoever builds it and where. Inputs come from
the cache; what is missing is fetched and verified against the lock first. The
output directory changes at once, when everything is done, or not at all.`,
		Example: `  imagebuild build -p profiles/lab.yaml --node n1
  imagebuild build -p profiles/prod.yaml -O /srv/slipway/prod`,
		Args: cli.Args(cobra.NoArgs),
	}
	flags.add(cmd)
	cmd.Flags().StringVarP(&out, "out", "O", "", "directory for the outputs (default: out/<environment>)")
	cmd.Flags().StringVar(&cache, "cache", "", "cache directory (default: $"+cas.EnvDir+", or ~/.cache/slipway)")
	cmd.Flags().StringVar(&key, "key", "", "ed25519 key that signs the index (default: ~/.config/slipway/sign_ed25519, made on first use)")
	format := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		resolved, err := imagebuild.Resolve(flags.request)
		if err != nil {
			return err
		}
		if out == "" {
			out = filepath.Join("out", resolved.Plan.Environment)
		}
		opts, err := buildOptions(out, cache, key)
		if err != nil {
			return err
		}
		return runBuild(cmd, resolved, opts, *format)
	}
	return cmd
}

// buildOptions opens what a build needs beside its plan.
func buildOptions(out, cache, key string) (opts imagebuild.Options, err error) {
	opts = imagebuild.Options{Out: out, Version: cli.Version(), Getenv: os.Getenv}
	if opts.Cache, err = openCache(cache); err != nil {
		return opts, err
	}
	if key == "" {
		if key, err = signkey.DefaultPath(); err != nil {
			return opts, err
		}
		opts.Key, err = signkey.LoadOrCreate(key)
		return opts, err
	}
	opts.Key, err = signkey.Load(key)
	return opts, err
}

func openCache(dir string) (*cas.Cache, error) {
	if dir == "" {
		var err error
		if dir, err = cas.DefaultDir(os.Getenv); err != nil {
			return nil, err
		}
	}
	return cas.Open(dir)
}

func runBuild(cmd *cobra.Command, r *imagebuild.Resolved, opts imagebuild.Options, format cli.Output) error {
	return cli.WithProgress(cmd.ErrOrStderr(), func(p progress.Reporter) error {
		opts.Progress = p
		result, err := r.Build(cmd.Context(), opts)
		if err != nil {
			return err
		}
		return finish(cmd, r, opts, result, format)
	})
}

func finish(cmd *cobra.Command, r *imagebuild.Resolved, opts imagebuild.Options, result imagebuild.Result, format cli.Output) error {
	if format == cli.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), struct {
			Dir       string         `json:"dir"`
			Unchanged bool           `json:"unchanged"`
			Key       string         `json:"key"`
			Absent    []plan.Absent  `json:"absent"`
			Images    []string       `json:"missingImages,omitempty"`
			Index     artifact.Index `json:"index"`
		}{result.Dir, result.Unchanged, signkey.PublicPath(opts.Key.Path), result.Absent, result.Images, result.Index})
	}
	printResult(cmd.OutOrStdout(), result)
	for _, what := range result.Lacks() {
		fmt.Fprintf(cmd.OutOrStdout(), "not in the image: %s\n", what)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "\nsigned by %s (%s)\n", signkey.PublicPath(opts.Key.Path), artifact.Fingerprint(opts.Key.Public()))
	printHowToBoot(cmd.OutOrStdout(), r, result)
	return nil
}

func printResult(w io.Writer, result imagebuild.Result) {
	state := "built"
	if result.Unchanged {
		state = "unchanged"
	}
	fmt.Fprintf(w, "%s %s, plan %s, in %s\n", state, result.Index.Name, result.Index.Plan.Short(), result.Dir)
	for _, f := range result.Index.Files {
		fmt.Fprintf(w, "  %-12s %9s  %s\n", f.Role, humanize.IBytes(uint64(f.Size)), f.Name)
	}
}

// printHowToBoot says what to do with the image.
func printHowToBoot(w io.Writer, r *imagebuild.Resolved, result imagebuild.Result) {
	qcow2 := filepath.Join(relative(result.Dir), result.Index.Name+".qcow2")
	if r.Plan.Substrate != "vm" {
		fmt.Fprintf(w, "\nto write it to a USB stick:\n  imagebuild usb %s --list\n", relative(result.Dir))
		return
	}
	if r.Plan.Disk.Seed == "" {
		fmt.Fprintf(w, "\nthe image has no seed: build with --node NAME, or attach one (imagebuild seed --format iso)\n")
	}
	fmt.Fprintf(w, `
to boot it (UEFI; the image itself is not changed; Ctrl-A X ends it):
  qemu-img create -f qcow2 -b %[1]s -F qcow2 /tmp/slipway.qcow2 8G
  cp /usr/share/OVMF/OVMF_VARS_4M.fd /tmp/slipway-vars.fd
  qemu-system-x86_64 -machine q35 -accel tcg,thread=multi -cpu max -smp 2 -m 1024 -nographic \
    -drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd \
    -drive if=pflash,format=raw,file=/tmp/slipway-vars.fd \
    -drive if=virtio,format=qcow2,file=/tmp/slipway.qcow2 -device virtio-rng-pci \
    -netdev user,id=lan,restrict=on,hostfwd=tcp:127.0.0.1:2222-10.0.2.15:22 \
    -device virtio-net-pci,netdev=lan,mac=52:54:00:12:34:56
`, absolute(qcow2))
	if r.Plan.Environment == "lab" {
		fmt.Fprint(w, "and to log in once it is up:\n  chmod 600 vm-test/testdata/lab_ed25519; ssh -i vm-test/testdata/lab_ed25519 -p 2222 slip@127.0.0.1\n")
	}
}

// relative is dir as seen from the working directory, when it lies below it.
func relative(dir string) string {
	wd, err := os.Getwd()
	if err != nil {
		return dir
	}
	rel, err := filepath.Rel(wd, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return dir
	}
	return rel
}

func absolute(p string) string {
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}
