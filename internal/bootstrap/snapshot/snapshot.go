// Package snapshot keeps snapshots of etcd on this machine: taken through a node,
// verified, named when they are whole, a few of them. A snapshot holds every Secret
// of the cluster; its directory is for its owner only.
//
// k3s restores one with: k3s server --cluster-reset --cluster-reset-restore-path=FILE
// (docs.k3s.io, etcd-snapshot), and needs the cluster's token for it.
package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/digest"
)

// Etcd gives snapshots: it writes one into a new file, which gets its name when it is
// whole and verified.
type Etcd interface {
	Snapshot(ctx context.Context, path string, tell func(bytes int64)) (member.Snapshot, error)
}

// Keeper keeps the snapshots of one cluster. One process at a time takes any.
type Keeper struct {
	Dir         string
	Etcd        Etcd // needed only to take one
	Environment string
	Keep        int // how many Take leaves, at least 1
	Now         func() time.Time
}

// Info is one snapshot, as it lies beside it in a file of its own.
type Info struct {
	Name        string    `json:"name"` // of its file
	Environment string    `json:"environment"`
	Taken       time.Time `json:"taken"`
	Why         string    `json:"why"`
	Run         string    `json:"run,omitempty"` // for which it was taken
	member.Snapshot
}

// Ends of names.
const (
	dataEnd = ".db"
	infoEnd = ".json"
	halfEnd = ".half" // of package etcd
)

// Take takes a snapshot, and removes the oldest beyond those that are kept. What
// killed processes left is swept before.
func (k Keeper) Take(ctx context.Context, run, why string, tell func(words string)) (Info, error) {
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return Info{}, fmt.Errorf("snapshot: %w", err)
	}
	if err := os.Chmod(k.Dir, 0o700); err != nil {
		return Info{}, fmt.Errorf("snapshot: %w", err)
	}
	if err := k.sweep(); err != nil {
		return Info{}, err
	}
	now := k.Now().UTC().Truncate(time.Second)
	info := Info{Environment: k.Environment, Taken: now, Why: why, Run: run}
	path := k.free(now)
	info.Name = filepath.Base(path)
	var err error
	if info.Snapshot, err = k.Etcd.Snapshot(ctx, path, func(n int64) { tell(fmt.Sprintf("for the data of etcd, %d MiB so far", n>>20)) }); err != nil {
		return Info{}, fmt.Errorf("snapshot: %w", err)
	}
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return Info{}, err
	}
	if err := renameio.WriteFile(strings.TrimSuffix(path, dataEnd)+infoEnd, append(text, '\n'), 0o600); err != nil {
		return Info{}, fmt.Errorf("snapshot: %w", err)
	}
	return info, k.prune(info)
}

// free is a name that no snapshot has.
func (k Keeper) free(now time.Time) string {
	stem := filepath.Join(k.Dir, "etcd-"+now.Format("20060102T150405Z"))
	path := stem + dataEnd
	for n := 2; ; n++ {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return path
		}
		path = fmt.Sprintf("%s-%d%s", stem, n, dataEnd)
	}
}

// sweep removes what has no name yet, and data of which nothing was written down.
func (k Keeper) sweep() error {
	left, err := os.ReadDir(k.Dir)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	for _, e := range left {
		stem, isData := strings.CutSuffix(e.Name(), dataEnd)
		if isData {
			_, err := os.Lstat(filepath.Join(k.Dir, stem+infoEnd))
			isData = errors.Is(err, fs.ErrNotExist)
		}
		if isData || strings.HasSuffix(e.Name(), halfEnd) {
			if err := os.Remove(filepath.Join(k.Dir, e.Name())); err != nil {
				return fmt.Errorf("snapshot: %w", err)
			}
		}
	}
	return nil
}

// List gives the snapshots, the newest first. A directory that is not there has none.
func (k Keeper) List() ([]Info, error) {
	names, err := filepath.Glob(filepath.Join(k.Dir, "*"+infoEnd))
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	var out []Info
	for _, name := range names {
		info, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("snapshot: %w", err)
		}
		out = append(out, info)
	}
	slices.SortStableFunc(out, func(a, b Info) int {
		if c := b.Taken.Compare(a.Taken); c != 0 {
			return c
		}
		return strings.Compare(b.Name, a.Name)
	})
	return out, nil
}

func read(name string) (Info, error) {
	var info Info
	text, err := os.ReadFile(name)
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return info, fmt.Errorf("%s: %w", name, err)
	}
	if info.Name != strings.TrimSuffix(filepath.Base(name), infoEnd)+dataEnd {
		return info, fmt.Errorf("%s is about %q", name, info.Name)
	}
	return info, nil
}

// prune removes the oldest beyond those that are kept; the newest stays in any case.
func (k Keeper) prune(newest Info) error {
	all, err := k.List()
	if err != nil || len(all) <= max(1, k.Keep) {
		return err
	}
	for _, old := range all[max(1, k.Keep):] {
		if old.Name == newest.Name {
			continue
		}
		// The description first: data without one is swept.
		for _, name := range []string{strings.TrimSuffix(old.Name, dataEnd) + infoEnd, old.Name} {
			if err := os.Remove(filepath.Join(k.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("snapshot: %w", err)
			}
		}
	}
	return nil
}

// Path is where a snapshot lies.
func (k Keeper) Path(i Info) string { return filepath.Join(k.Dir, i.Name) }

// Verify reads a snapshot through and compares it with its digest.
func (k Keeper) Verify(i Info) error {
	f, err := os.Open(k.Path(i))
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(io.Discard, digest.NewReader(f, i.Digest)); err != nil {
		return fmt.Errorf("snapshot %s: %w", i.Name, err)
	}
	return nil
}

// Ensure takes a snapshot for a run that has none.
func (k Keeper) Ensure(ctx context.Context, run, why string, tell func(words string)) error {
	if has, err := k.Has(ctx, run); has || err != nil {
		return err
	}
	_, err := k.Take(ctx, run, why, tell)
	return err
}

// Has reports whether a whole snapshot of a run is there.
func (k Keeper) Has(_ context.Context, run string) (bool, error) {
	all, err := k.List()
	if err != nil {
		return false, err
	}
	for _, i := range all {
		if i.Run == run && k.Verify(i) == nil {
			return true, nil
		}
	}
	return false, nil
}
