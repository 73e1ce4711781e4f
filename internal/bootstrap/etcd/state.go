package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway/slipway/internal/bootstrap/member"
)

// State is the member list, and what each member says about itself. When no quorum
// answers, it is what one member remembers, and says so.
func (c *Client) State(ctx context.Context) (member.State, error) {
	list, err := c.list(ctx)
	stale := false
	if err != nil && ctx.Err() == nil {
		var again error
		if list, again = c.list(ctx, clientv3.WithSerializable()); again == nil {
			err, stale = nil, true
		}
	}
	if err != nil {
		return member.State{}, fmt.Errorf("listing the members: %w", err)
	}
	s := member.State{Cluster: member.ID(list.Header.ClusterId), Stale: stale, Health: map[member.ID]member.Health{}}
	for _, m := range list.Members {
		s.Members = append(s.Members, memberOf(m))
	}
	c.askAll(ctx, s)
	return s, ctx.Err()
}

func memberOf(m *pb.Member) member.Member {
	return member.Member{ID: member.ID(m.ID), Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.IsLearner}
}

func (c *Client) list(ctx context.Context, how ...clientv3.OpOption) (list *clientv3.MemberListResponse, err error) {
	err = c.first(ctx, func(ctx context.Context, one *clientv3.Client) error {
		list, err = one.MemberList(ctx, how...)
		return err
	})
	return list, err
}

// askAll fills in the health of all members, each asked itself, all at once: a dead
// one takes as long as patience lasts.
func (c *Client) askAll(ctx context.Context, s member.State) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	for _, m := range s.Members {
		wait.Go(func() {
			h := c.health(ctx, s.Cluster, m)
			mu.Lock()
			defer mu.Unlock()
			s.Health[m.ID] = h
		})
	}
	wait.Wait()
}

func (c *Client) health(ctx context.Context, cluster member.ID, m member.Member) member.Health {
	why := "it has no address for clients"
	if len(m.ClientURLs) == 0 && m.Name == "" {
		why = "it has never started"
	}
	for _, endpoint := range m.ClientURLs {
		var h member.Health
		err := c.one(ctx, endpoint, func(ctx context.Context, one *clientv3.Client) error {
			st, err := one.Status(ctx, endpoint)
			if err == nil {
				h = judge(st, cluster, m)
			}
			return err
		})
		if err == nil && h.Healthy && !m.Learner {
			h = c.agrees(ctx, endpoint, h)
		}
		if err == nil {
			return h
		}
		why = reason(err)
	}
	return member.Health{Why: why}
}

// judge reads a member's own words. A member of the same address that is somebody
// else is what a node leaves behind that was initialised a second time.
func judge(st *clientv3.StatusResponse, cluster member.ID, m member.Member) member.Health {
	h := member.Health{Answers: true, Version: st.Version, Leader: st.Leader != 0 && st.Leader == st.Header.MemberId}
	switch {
	case member.ID(st.Header.ClusterId) != cluster:
		h.Answers, h.Why = false, fmt.Sprintf("a member of another cluster (%s) answers at its address", member.ID(st.Header.ClusterId))
	case member.ID(st.Header.MemberId) != m.ID:
		h.Answers, h.Why = false, fmt.Sprintf("another member (%s) answers at its address", member.ID(st.Header.MemberId))
	case st.Leader == 0:
		h.Why = "it has no leader"
	case len(st.Errors) > 0:
		h.Why = "it reports " + strings.Join(st.Errors, ", ")
	default:
		h.Healthy = true
	}
	return h
}

// agrees lets a member take part in one agreement: who reads linearizably gets an
// answer only when a majority confirms it (etcd's own health check does the same).
func (c *Client) agrees(ctx context.Context, endpoint string, h member.Health) member.Health {
	err := c.one(ctx, endpoint, func(ctx context.Context, one *clientv3.Client) error {
		_, err := one.Get(ctx, "health")
		return err
	})
	if err != nil {
		h.Healthy, h.Why = false, "it answers, but the others do not confirm what it says: "+reason(err)
	}
	return h
}

// reason is an error of gRPC in the words of its innermost part.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	st, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	if st.Code() == codes.DeadlineExceeded {
		return "no answer in time"
	}
	text := st.Message()
	for _, marker := range []string{"transport: Error while dialing: ", "transport: authentication handshake failed: ", "last connection error: "} {
		if _, rest, found := strings.Cut(text, marker); found {
			text = strings.Trim(rest, `"`)
		}
	}
	return text
}
