// Package fetch fills the content-addressed cache from a lock. What the cache
// has already is not asked for again, so that a build whose inputs are all there
// needs no network, and does not even need to know where the archives are.
package fetch

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/progress"
)

// Fetcher brings inputs into a cache. Cache and Archives must be set.
type Fetcher struct {
	Cache *cas.Cache
	// Archives tells the base URL of each archive that a lock names. It is
	// called only when a package is missing.
	Archives func(ctx context.Context) (map[string]string, error)
	Profile  string // as the user named it, for hints
	Dir      string // where relative paths of file artifacts start: the profile's directory

	Report   progress.Reporter // nil says nothing
	Client   *http.Client      // nil is one that uses the proxies of the environment
	Parallel int               // downloads at once; 0 means 4
	Attempts int               // tries a download gets; 0 means 5
	Pause    time.Duration     // before the second try, doubled for each further one; 0 means half a second
	Stall    time.Duration     // silence after which a connection counts as dead; 0 means 30 s

	gone *vanished // packages that their archive no longer has
}

// Summary is what a fetch did.
type Summary struct {
	Fetched int   `json:"fetched"` // downloads that were needed
	Cached  int   `json:"cached"`  // inputs that were there already
	Bytes   int64 `json:"bytes"`   // size of what was fetched
}

func (s *Summary) add(o Summary) {
	s.Fetched += o.Fetched
	s.Cached += o.Cached
	s.Bytes += o.Bytes
}

// Sets fetches the named package sets.
func (f Fetcher) Sets(ctx context.Context, lock *pin.Lock, names ...string) (Summary, error) {
	var total Summary
	run := f.ready()
	for _, name := range names {
		set := lock.Set(name)
		if set == nil {
			return total, diag.WithHint(fmt.Errorf("the lock has no package set %q", name), run.repin())
		}
		s, err := run.set(ctx, set)
		total.add(s)
		if err != nil {
			return total, err
		}
	}
	return total, run.gone.err()
}

func (f *Fetcher) set(ctx context.Context, set *pin.Set) (Summary, error) {
	missing, s := f.missing(set)
	if len(missing) == 0 {
		return s, nil
	}
	if err := f.Cache.Room(s.Bytes); err != nil {
		return s, err
	}
	bases, err := f.Archives(ctx)
	if err != nil {
		return s, err
	}
	task := f.Report.Start("packages of "+set.Name, s.Bytes)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(f.Parallel)
	for _, p := range missing {
		group.Go(func() error {
			return f.gone.take(f.download(ctx, f.packageItem(p, bases[p.Archive]), task))
		})
	}
	err = group.Wait()
	task.Done(fmt.Sprintf("%d packages", len(missing)), cmp.Or(err, f.gone.err()))
	return s, err
}

func (f *Fetcher) missing(set *pin.Set) (list []pin.Package, s Summary) {
	for _, p := range set.Packages {
		if f.Cache.Has(p.Digest) {
			s.Cached++
			continue
		}
		list = append(list, p)
		s.Fetched++
		s.Bytes += p.Size
	}
	return list, s
}

func (f *Fetcher) packageItem(p pin.Package, base string) item {
	return item{
		name:   p.Name + " " + p.Version,
		url:    base + "/" + escape(p.Path),
		digest: p.Digest,
		size:   p.Size,
		gone:   f.repin() + "; or name a mirror that keeps old packages in debian.mirror or SLIPWAY_DEBIAN_MIRROR",
		moved:  "the archive has moved on: it no longer has",
	}
}

// escape keeps what URLs may hold in a path and what the archive's servers know
// under both spellings; a plus sign in a version must not become a blank.
func escape(path string) string {
	return strings.NewReplacer("%", "%25", "+", "%2b", " ", "%20", "#", "%23", "?", "%3f").Replace(path)
}

func (f *Fetcher) repin() string {
	return "run imagebuild pin -p " + f.Profile
}

// ready is a copy with the defaults filled in.
func (f Fetcher) ready() *Fetcher {
	if f.Report == nil {
		f.Report = progress.Nop{}
	}
	if f.Client == nil {
		f.Client = newClient()
	}
	f.Parallel = cmp.Or(f.Parallel, 4)
	f.Attempts = cmp.Or(f.Attempts, 5)
	f.Pause = cmp.Or(f.Pause, 500*time.Millisecond)
	f.Stall = cmp.Or(f.Stall, 30*time.Second)
	f.Profile = cmp.Or(f.Profile, "PROFILE")
	f.gone = &vanished{}
	return &f
}
