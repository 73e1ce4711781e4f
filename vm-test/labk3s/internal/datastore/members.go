package datastore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/slipway/slipway/vm-test/labk3s/internal/joining"
)

// infoPath is where a server tells the members of etcd.
const infoPath = "/db/info"

// info is what it tells.
type info struct {
	Members []*etcdserverpb.Member `json:"members"`
}

// Members is the document for a server that joins. Before the member serves it has
// only this one, so that nobody thinks that there is no cluster.
func (d *Store) Members(ctx context.Context) ([]byte, error) {
	list, err := d.list(ctx)
	if err != nil {
		list = []*etcdserverpb.Member{{Name: d.name, PeerURLs: []string{d.peerURL()}, ClientURLs: []string{d.clientURL()}}}
	}
	return json.Marshal(info{list})
}

// Addresses are where the API servers of all voters are.
func (d *Store) Addresses(ctx context.Context) ([]string, error) {
	list, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range list {
		if host := hostOf(m.PeerURLs); host != "" && !m.IsLearner {
			out = append(out, net.JoinHostPort(host, strconv.Itoa(d.settings.Port)))
		}
	}
	return out, nil
}

func (d *Store) list(ctx context.Context) ([]*etcdserverpb.Member, error) {
	c := d.client.Load()
	if c == nil {
		return nil, errors.New("etcd is not ready")
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	list, err := c.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the members of etcd: %w", err)
	}
	return list.Members, nil
}

func hostOf(urls []string) string {
	for _, s := range urls {
		if u, err := url.Parse(s); err == nil {
			return u.Hostname()
		}
	}
	return ""
}

// Voters are where a server that joins reaches the voters of the cluster, leaving
// out what is at its own address.
func Voters(ctx context.Context, s *joining.Server, own string) ([]string, error) {
	doc, err := s.Get(ctx, infoPath)
	if err != nil {
		return nil, err
	}
	var list info
	if err := json.Unmarshal(doc, &list); err != nil {
		return nil, fmt.Errorf("reading the members of etcd: %w", err)
	}
	var out []string
	for _, m := range list.Members {
		if !m.IsLearner && hostOf(m.ClientURLs) != own {
			out = append(out, m.ClientURLs...)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the server knows no other member of etcd that votes")
	}
	return out, nil
}

// Look and stall are the times of learners: how often the leader looks at them, and
// how long one may stand still until it is put out.
const (
	look  = 5 * time.Second
	stall = 5 * time.Minute
)

// AwaitVote returns when this member votes.
func (d *Store) AwaitVote(ctx context.Context) error {
	for {
		list, err := d.list(ctx)
		for _, m := range list {
			if m.Name == d.name && !m.IsLearner {
				return nil
			}
		}
		slog.Info("Waiting for etcd: this server is not a voting member yet", "name", d.name, "err", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.etcd.Server.StopNotify():
			return d.Wait(ctx)
		case <-time.After(look / 2):
		}
	}
}

// Tend gives learners their vote when they have caught up, as long as this member
// leads, and puts those out that do not come on. It returns when ctx ends.
func (d *Store) Tend(ctx context.Context) {
	seen := map[uint64]progress{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(look):
		}
		if uint64(d.etcd.Server.Leader()) != uint64(d.etcd.Server.MemberID()) {
			clear(seen)
			continue
		}
		list, err := d.list(ctx)
		if err != nil {
			slog.Error("Failed to get etcd members for learner management", "err", err)
			continue
		}
		for _, m := range list {
			if m.IsLearner {
				seen[m.ID] = d.raise(ctx, m, seen[m.ID])
			}
		}
	}
}

// progress is how far a learner had come, and when that was seen first.
type progress struct {
	index uint64
	since time.Time
}

// raise promotes a learner, or notes how far it is.
func (d *Store) raise(ctx context.Context, m *etcdserverpb.Member, before progress) progress {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	_, err := d.Client().MemberPromote(ctx, m.ID)
	if err == nil {
		slog.Info("Promoted learner", "name", m.Name)
		return before
	}
	slog.Debug("Unable to promote learner", "name", m.Name, "err", err)
	now := progress{before.index, time.Now()}
	for _, u := range m.ClientURLs {
		if st, err := d.Client().Status(ctx, u); err == nil {
			now.index = max(now.index, st.RaftAppliedIndex)
			break
		}
	}
	if before.since.IsZero() || now.index > before.index {
		return now
	}
	if time.Since(before.since) > stall {
		slog.Warn("Removed learner from etcd cluster: it makes no progress", "name", m.Name)
		if _, err := d.Client().MemberRemove(ctx, m.ID); err != nil {
			slog.Error("Failed to remove learner", "name", m.Name, "err", err)
		}
	}
	return before
}

// Remove removes a member, when there is one of that name at that address.
func (d *Store) Remove(ctx context.Context, name, address string) error {
	list, err := d.list(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(m *etcdserverpb.Member) bool {
		return m.Name == name && strings.EqualFold(hostOf(m.PeerURLs), address)
	})
	if i < 0 {
		return nil
	}
	slog.Info("Removing etcd member", "name", name, "address", address)
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	_, err = d.Client().MemberRemove(ctx, list[i].ID)
	if errors.Is(err, rpctypes.ErrMemberNotFound) {
		return nil
	}
	return err
}
