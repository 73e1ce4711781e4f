package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// pause is the time between two looks at a cluster that is not ready yet.
const pause = 500 * time.Millisecond

// Connect makes a client of the cluster behind the endpoints.
func Connect(endpoints []string, f Files) (*clientv3.Client, error) {
	cfg := clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop()} // errors are returned
	if f.CA != "" {
		t, err := f.info().ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("reading the certificates of an etcd client: %w", err)
		}
		cfg.TLS = t
	}
	return clientv3.New(cfg)
}

// Join adds a member as a learner, which has no vote until Promote, and returns
// the list of members that it must start with. A member that was added before is
// not added again.
func Join(ctx context.Context, c *clientv3.Client, name, peer string) (initial string, err error) {
	list, err := c.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("asking for the members of etcd: %w", err)
	}
	members := list.Members
	if find(members, peer) == nil {
		if members, err = add(ctx, c, peer); err != nil {
			return "", fmt.Errorf("adding %s as a learner: %w", name, err)
		}
	}
	return initialCluster(members, name, peer), nil
}

// add adds a learner. For the first five seconds of its connections a member takes
// its cluster for unhealthy and refuses, so that is tried again.
func add(ctx context.Context, c *clientv3.Client, peer string) ([]*etcdserverpb.Member, error) {
	for {
		added, err := c.MemberAddAsLearner(ctx, []string{peer})
		if err == nil {
			return added.Members, nil
		}
		if !errors.Is(err, rpctypes.ErrUnhealthy) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// initialCluster writes a member list as etcd's flag wants it. A member that has
// not started has no name yet; of those only the one that joins may be listed.
func initialCluster(members []*etcdserverpb.Member, name, peer string) string {
	var out []string
	for _, m := range members {
		if slices.Contains(m.PeerURLs, peer) {
			out = append(out, name+"="+peer)
			continue
		}
		for _, u := range m.PeerURLs {
			out = append(out, m.Name+"="+u)
		}
	}
	return strings.Join(out, ",")
}

func find(members []*etcdserverpb.Member, peer string) *etcdserverpb.Member {
	for _, m := range members {
		if slices.Contains(m.PeerURLs, peer) {
			return m
		}
	}
	return nil
}

// Promote gives a learner its vote as soon as it has caught up with the leader.
// It is done when the member votes, and waits until then or the end of ctx.
func Promote(ctx context.Context, c *clientv3.Client, peer string) error {
	for {
		done, err := promote(ctx, c, peer)
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("promoting the learner at %s: %w", peer, err)
		case <-time.After(pause):
		}
	}
}

func promote(ctx context.Context, c *clientv3.Client, peer string) (done bool, err error) {
	list, err := c.MemberList(ctx)
	if err != nil {
		return false, err
	}
	m := find(list.Members, peer)
	if m == nil {
		return false, fmt.Errorf("no member of etcd has this URL")
	}
	if !m.IsLearner {
		return true, nil
	}
	_, err = c.MemberPromote(ctx, m.ID)
	return err == nil, err
}
