// Package desktest is for tests of what stands in front of a desk: a ledger in
// memory, a cluster, and the machines that talk to it.
package desktest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/pxed/desk"
)

// Memory is a ledger that forgets. Down makes it fail, as one without a majority.
type Memory struct {
	mu       sync.Mutex
	records  map[machine.Key]life.Record
	reports  map[machine.Key]machine.Report
	receipts map[machine.Key]machine.Receipt
	events   []desk.Event
	down     error
}

// NewMemory returns an empty ledger.
func NewMemory() *Memory {
	return &Memory{records: map[machine.Key]life.Record{}, reports: map[machine.Key]machine.Report{}, receipts: map[machine.Key]machine.Receipt{}}
}

// Down makes everything fail with err, until it is called with nil.
func (m *Memory) Down(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
}

func (m *Memory) fleet() []life.Record {
	var out []life.Record
	for _, k := range slices.Sorted(maps.Keys(m.records)) {
		out = append(out, m.records[k])
	}
	return out
}

// Change implements desk.Records.
func (m *Memory) Change(_ context.Context, decide func([]life.Record) (desk.Change, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	c, err := decide(m.fleet())
	if err != nil {
		return err
	}
	for _, r := range c.Put {
		m.records[r.Key] = r
	}
	for _, k := range c.Gone {
		delete(m.records, k)
		delete(m.reports, k)
		delete(m.receipts, k)
	}
	maps.Copy(m.reports, c.Reports)
	for k, r := range c.Receipts {
		r.Ticket = ""
		m.receipts[k] = r
	}
	for _, e := range c.Events {
		e.Seq = int64(len(m.events) + 1)
		m.events = append(m.events, e)
	}
	return nil
}

// Machines implements desk.Records.
func (m *Memory) Machines(context.Context) ([]life.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fleet(), m.down
}

// Report implements desk.Papers.
func (m *Memory) Report(_ context.Context, key machine.Key) (*machine.Report, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.reports[key]; ok {
		return &r, m.down
	}
	return nil, m.down
}

// Receipt implements desk.Papers.
func (m *Memory) Receipt(_ context.Context, key machine.Key) (*machine.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.receipts[key]; ok {
		return &r, m.down
	}
	return nil, m.down
}

// Events implements desk.Log.
func (m *Memory) Events(_ context.Context, after int64, limit int) ([]desk.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := min(int(max(0, after)), len(m.events))
	return slices.Clone(m.events[from:min(len(m.events), from+limit)]), m.down
}

// LastEvent implements desk.Log.
func (m *Memory) LastEvent(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.events)), m.down
}
