package pxed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/pxed/pxe/lease"
)

// LeaseFile keeps leases in a file of its own beside the ledger: they belong to one
// network and one pxed, and are worth nothing to another.
type LeaseFile struct {
	Path string
	Now  func() time.Time

	mu   sync.Mutex
	held map[netip.Addr]lease.Lease
}

// Load implements dhcpd.Store. Leases that ended long ago are left out.
func (f *LeaseFile) Load(context.Context) ([]lease.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.load(); err != nil {
		return nil, err
	}
	return f.list(), nil
}

func (f *LeaseFile) load() error {
	if f.held != nil {
		return nil
	}
	held := map[netip.Addr]lease.Lease{}
	data, err := os.ReadFile(f.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var list []lease.Lease
	if len(data) > 0 {
		if err := json.Unmarshal(data, &list); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	for _, l := range list {
		held[l.Addr] = l
	}
	f.held = held
	return nil
}

// keptLeases is how long an expired lease is remembered, so that a machine that
// comes back gets the same address.
const keptLeases = 30 * 24 * time.Hour

func (f *LeaseFile) list() []lease.Lease {
	maps.DeleteFunc(f.held, func(_ netip.Addr, l lease.Lease) bool { return f.Now().Sub(l.Expires) > keptLeases })
	return slices.SortedFunc(maps.Values(f.held), func(a, b lease.Lease) int { return cmp.Compare(a.Addr.String(), b.Addr.String()) })
}

// Save implements dhcpd.Store: when it returns, the leases are on the disk.
func (f *LeaseFile) Save(_ context.Context, leases []lease.Lease) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.load(); err != nil {
		return err
	}
	for _, l := range leases {
		f.held[l.Addr] = l
	}
	data, err := json.MarshalIndent(f.list(), "", " ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(f.Path, append(data, '\n'), 0o600)
}
