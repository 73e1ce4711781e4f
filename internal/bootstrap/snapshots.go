package bootstrap

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/slipway/slipway/internal/bootstrap/snapshot"
)

// DefaultKeep is how many snapshots are kept.
const DefaultKeep = 10

// Snapshots keeps the snapshots of etcd, keep of them.
func (s *Session) Snapshots(keep int) snapshot.Keeper { return s.snapshots(living{s, ""}, keep) }

func (s *Session) snapshots(from living, keep int) snapshot.Keeper {
	return snapshot.Keeper{
		Dir: filepath.Join(s.State, snapshotsName), Etcd: from, Environment: s.Cluster.Environment, Keep: keep, Now: s.Now,
	}
}

// TakeSnapshot takes one now.
func (s *Session) TakeSnapshot(ctx context.Context, keep int, why string, tell func(words string)) (i snapshot.Info, err error) {
	lock, err := s.lock()
	if err != nil {
		return i, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return s.Snapshots(keep).Take(ctx, "", why, tell)
}
