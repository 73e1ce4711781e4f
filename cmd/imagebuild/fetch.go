package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/pinning"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/progress"
)

// cacheFlag adds --cache to a command.
func cacheFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "cache", "", "directory of the cache (default $"+cas.EnvDir+", else ~/.cache/slipway)")
}

// newFetcher makes the fetcher for a profile; it looks for the archives only
// when something is missing.
func newFetcher(profile string, c *cluster.Cluster, cache *cas.Cache, report progress.Reporter) fetch.Fetcher {
	return fetch.Fetcher{
		Cache: cache, Report: report, Profile: profile, Dir: filepath.Dir(profile),
		Archives: func(ctx context.Context) (map[string]string, error) {
			m, err := aptresolve.FindMirrors(ctx, c.Debian.Mirror, os.Getenv)
			return map[string]string{pin.ArchiveDebian: m.Debian, pin.ArchiveSecurity: m.Security}, err
		},
	}
}

type fetchResult struct {
	fetch.Summary
	Cache string `json:"cache"`
}

func newFetchCmd() *cobra.Command {
	var profile, cacheDir string
	var artifacts bool
	cmd := &cobra.Command{
		Use:   "fetch -p PROFILE",
		Short: "fill the cache with what the lock names",
		Long: `fetch brings every Debian package that the profile's lock names into the
content-addressed cache, verified; with --artifacts the charts, manifests and
binaries too. Afterwards a build needs no network. A fetch that was stopped goes
on where it was.`,
		Args: cli.Args(cobra.NoArgs),
	}
	cmd.Flags().StringVarP(&profile, "profile", "p", defaultProfile, "profile of the environment")
	cmd.Flags().BoolVar(&artifacts, "artifacts", false, "also fetch what is no Debian package: charts, manifests, k3s")
	cacheFlag(cmd, &cacheDir)
	output := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var res fetchResult
		err := cli.WithProgress(cmd.ErrOrStderr(), func(report progress.Reporter) (err error) {
			res, err = runFetch(cmd.Context(), profile, cacheDir, artifacts, report)
			return err
		})
		if err != nil {
			return err
		}
		if *output == cli.JSON {
			return cli.WriteJSON(cmd.OutOrStdout(), res)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "fetched %d (%s), %d were there already, in %s\n", res.Fetched, humanize.IBytes(uint64(res.Bytes)), res.Cached, res.Cache)
		return err
	}
	return cmd
}

func runFetch(ctx context.Context, profile, cacheDir string, artifacts bool, report progress.Reporter) (fetchResult, error) {
	p, err := profilefile.Load(profile)
	if err != nil {
		return fetchResult{}, err
	}
	if err := pinning.Check(profile, &p.Cluster); err != nil {
		return fetchResult{}, err
	}
	lock, err := pinning.Read(profile)
	if err != nil {
		return fetchResult{}, err
	}
	cache, err := openCache(cacheDir)
	if err != nil {
		return fetchResult{}, err
	}
	res := fetchResult{Cache: cache.Dir()}
	f := newFetcher(profile, &p.Cluster, cache, report)
	res.Summary, err = f.Sets(ctx, lock, pin.SetRootfs, pin.SetKernel, pin.SetNetboot)
	if err != nil || !artifacts {
		return res, err
	}
	var names []string
	for _, a := range lock.Artifacts {
		if a.Unpinned == "" {
			names = append(names, a.Name)
		}
	}
	more, err := f.Artifacts(ctx, lock, names...)
	res.Fetched += more.Fetched
	res.Cached += more.Cached
	res.Bytes += more.Bytes
	return res, err
}
