// Package pinning is the story of a lock: what the profile wants is resolved
// against the archive of today and the projects' releases, compared with the
// lock that is there, and written beside the profile.
package pinning

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/images"
	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/progress"
)

// Options say what to pin and with what.
type Options struct {
	Profile string           // path of the overlay, for messages and for finding the lock
	Cluster *cluster.Cluster // what the profile says
	Cache   *cas.Cache       // receives artifacts while they are pinned
	Report  progress.Reporter
	Getenv  func(string) string
	Keyring string // of the Debian archive; "" is the host's
}

// Result is what pinning did.
type Result struct {
	Lock     string       `json:"lock"`    // path
	Written  bool         `json:"written"` // false when nothing has changed
	Changes  []pin.Change `json:"changes"`
	Unpinned []Unpinned   `json:"unpinned"`           // inputs without a digest
	Replaced string       `json:"replaced,omitempty"` // why the old lock could not be read
}

// Unpinned is an input that has no digest now.
type Unpinned struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Source  string `json:"source"`
	Reason  string `json:"reason"`          // as the lock has it
	Error   string `json:"error,omitempty"` // what happened when it was tried; "" when the profile's sources do not have it
}

// Failed counts the inputs whose sources were tried in vain.
func (r *Result) Failed() (n int) {
	for _, u := range r.Unpinned {
		if u.Error != "" {
			n++
		}
	}
	return n
}

// Want lists what the profile wants from outside.
func Want(c *cluster.Cluster) (pin.Wanted, error) {
	if err := pin.CheckFiles(c); err != nil {
		return pin.Wanted{}, exit.With(exit.Usage, err)
	}
	builtin, err := images.Packages(string(c.Substrate))
	if err != nil {
		return pin.Wanted{}, err
	}
	return pin.Want(c, builtin, images.KernelPackage(string(c.Substrate))), nil
}

// Check compares the lock with the profile, without any network.
func Check(profile string, c *cluster.Cluster) error {
	want, err := Want(c)
	if err != nil {
		return err
	}
	lock, err := Read(profile)
	if err != nil {
		return err
	}
	return exit.With(exit.Usage, lock.Covers(want, profile))
}

// Pin resolves everything and writes the lock, if it changes. Artifacts whose
// source cannot be reached are written as unpinned.
func Pin(ctx context.Context, o Options) (Result, error) {
	res := Result{Lock: pin.Path(o.Profile)}
	want, err := Want(o.Cluster)
	if err != nil {
		return res, err
	}
	old, err := previous(o.Profile, &res)
	if err != nil {
		return res, err
	}
	lock := &pin.Lock{}
	if lock.Debian, err = o.debian(ctx, want); err != nil {
		return res, err
	}
	if err := o.artifacts(ctx, want, old, lock, &res); err != nil {
		return res, err
	}
	if err := o.images(ctx, old, lock, &res); err != nil {
		return res, err
	}
	slices.SortFunc(lock.Artifacts, func(a, b pin.Artifact) int { return strings.Compare(a.Name, b.Name) })
	if old != nil {
		res.Changes = pin.Diff(old, lock)
		if len(res.Changes) == 0 && old.Covers(want, o.Profile) == nil {
			// Newer indexes with the same packages in them are no reason to
			// build another image.
			return res, nil
		}
	} else {
		res.Changes = pin.Diff(nil, lock)
	}
	res.Written = true
	return res, write(res.Lock, lock)
}

func (o *Options) debian(ctx context.Context, want pin.Wanted) (pin.Debian, error) {
	mirrors, err := aptresolve.FindMirrors(ctx, o.Cluster.Debian.Mirror, o.Getenv)
	if err != nil {
		return pin.Debian{}, err
	}
	return aptresolve.Resolve(ctx, aptresolve.Request{
		Suite: want.Suite, Components: want.Components, Sets: want.Sets, Mirrors: mirrors, Keyring: o.Keyring, Env: proxies(o.Getenv),
	}, o.Report)
}

// proxies are the variables that apt's methods read.
func proxies(getenv func(string) string) (env []string) {
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy"} {
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func (o *Options) fetcher() fetch.Fetcher {
	return fetch.Fetcher{Cache: o.Cache, Report: o.Report, Profile: o.Profile, Dir: filepath.Dir(o.Profile), Attempts: 2}
}

func (o *Options) artifacts(ctx context.Context, want pin.Wanted, old, lock *pin.Lock, res *Result) error {
	f := o.fetcher()
	todo := want.Artifacts
	for len(todo) > 0 {
		a, err := o.artifact(ctx, f, todo[0], old)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if a.Unpinned != "" {
			res.Unpinned = append(res.Unpinned, unpinned(a, err))
		}
		lock.Artifacts = append(lock.Artifacts, a)
		more, err := followers(ctx, f, lock, old, a)
		if err != nil {
			return err
		}
		todo = append(todo[1:len(todo):len(todo)], more...)
	}
	return nil
}

// followers are the artifacts that the content of a asks for, without digests. What
// the old lock has for the same content is not read again.
func followers(ctx context.Context, f fetch.Fetcher, lock, old *pin.Lock, a pin.Artifact) ([]pin.Artifact, error) {
	if a.Name != pin.ArtifactFlux || a.Kind != pin.KindGoModule || a.Unpinned != "" {
		return nil, nil
	}
	if old != nil {
		if was := old.Artifact(a.Name); was != nil && was.Digest == a.Digest {
			if known := old.Followers(a.Name); len(known) > 0 {
				return known, nil
			}
		}
	}
	if _, err := f.Artifacts(ctx, lock, a.Name); err != nil { // pinned before, and not in this cache
		return nil, err
	}
	manifests, err := f.Cache.Open(a.Digest)
	if err != nil {
		return nil, err
	}
	defer manifests.Close()
	return pin.FluxFollowers(manifests)
}

// artifact keeps what is pinned already: a release does not change, and if it
// did, that would be no reason to follow it. Files are read again each time.
func (o *Options) artifact(ctx context.Context, f fetch.Fetcher, a pin.Artifact, old *pin.Lock) (pin.Artifact, error) {
	if a.Unpinned != "" {
		return a, nil
	}
	if old != nil && a.Kind != pin.KindFile {
		if was := old.Artifact(a.Name); was != nil && was.Unpinned == "" && was.SameAs(a) {
			return *was, nil
		}
	}
	pinned, err := f.Pin(ctx, a)
	switch {
	case err == nil:
		return pinned, nil
	case a.Kind == pin.KindFile && errors.Is(err, fs.ErrNotExist):
		a.Unpinned = "there was no such file when this lock was written" // and that may be meant
		return a, nil
	}
	a.Unpinned = reason(a.Kind)
	return a, err
}

// reason is what the lock says about an input that could not be had. It is in
// git and the same everywhere; what exactly went wrong is told to who pins.
func reason(kind pin.Kind) string {
	switch kind {
	case pin.KindGoModule:
		return "the Go module could not be fetched when this lock was written"
	case pin.KindFile:
		return "the file could not be read when this lock was written"
	case pin.KindImage:
		return "the registry could not be reached when this lock was written"
	default:
		return "the source could not be reached when this lock was written"
	}
}

func unpinned(a pin.Artifact, err error) Unpinned {
	u := Unpinned{Name: a.Name, Version: a.Version, Source: a.Source, Reason: a.Unpinned}
	if err != nil {
		u.Error = strings.Join(strings.Fields(err.Error()), " ")
	}
	return u
}

// previous is the lock that is there, or nil. A lock that cannot be understood is
// not an obstacle to writing a new one; one that cannot be read at all is.
func previous(profile string, res *Result) (*pin.Lock, error) {
	lock, err := Read(profile)
	var findings *diag.Error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.As(err, &findings):
		res.Replaced = findings.Findings[0].String()
		return nil, nil
	}
	return lock, err
}

func write(name string, lock *pin.Lock) error {
	data := lock.Marshal()
	if _, err := pin.Parse(name, data); err != nil {
		return fmt.Errorf("the new lock cannot be read back: %w", err)
	}
	if err := renameio.WriteFile(name, data, 0o644); err != nil {
		return fmt.Errorf("writing lock: %w", err)
	}
	return nil
}
