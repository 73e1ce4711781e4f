package ledgertest

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/run"
)

// filters: runs are found by story, subject and whether they have ended.
func (s *suite) filters(ended ledger.Run) {
	open := ledger.Run{ID: "run-2", Story: "rebuild", Subject: "n3", Owner: "me", Started: Clock().Add(time.Minute)}
	up := ledger.Run{ID: "run-3", Story: "up", Owner: "me", Started: Clock().Add(2 * time.Minute)}
	for _, r := range []ledger.Run{open, up} {
		if err := s.any().StartRun(s.Context(), r); err != nil {
			s.Fatal(err)
		}
	}
	for _, c := range []struct {
		filter run.Filter
		want   []string
	}{
		{run.Filter{}, []string{up.ID, open.ID, ended.ID}}, {run.Filter{Limit: 1}, []string{up.ID}}, {run.Filter{Story: "rebuild"}, []string{open.ID, ended.ID}},
		{run.Filter{Story: "rebuild", Open: true}, []string{open.ID}}, {run.Filter{Subject: "n2"}, []string{ended.ID}}, {run.Filter{Subject: "n2", Open: true}, nil}, {run.Filter{Subject: "' OR 1=1"}, nil},
	} {
		list, err := s.any().Runs(s.Context(), c.filter)
		var got []string
		for _, r := range list {
			got = append(got, r.ID)
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			s.Errorf("%+v: %q, %v, not %q", c.filter, got, err, c.want)
		}
	}
}

// Cluster is a cluster as it was seen.
func Cluster() identity.Cluster {
	return identity.Cluster{
		Environment: "lab", Name: "harbor", CA: digest.Of([]byte("ca")), UID: "u-1", Etcd: "e-1", Seen: Clock(),
		Members: []member.Member{{ID: 1<<63 + 7, Name: "n1-a", PeerURLs: []string{"https://10.0.2.15:2380"}}},
		Nodes:   []identity.Node{{Name: "n1", UID: "x", HostKeys: []string{"ssh-ed25519 A"}}}, Flux: &identity.Flux{Revision: "main@sha1:a"},
	}
}

func (s *suite) clusters() {
	if _, err := s.any().Cluster(s.Context(), "lab"); !errors.Is(err, ledger.ErrUnknown) {
		s.Errorf("an empty ledger: %v", err)
	}
	before, err := s.any().LastEvent(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	c := Cluster()
	s.manyPut(c)
	got, err := s.any().Cluster(s.Context(), "lab")
	if err != nil || !reflect.DeepEqual(got, c) {
		s.Errorf("%+v, %v\nwant %+v", got, err, c)
	}
	if events, err := s.any().Events(s.Context(), before, 10); err != nil || len(events) != 1 || !strings.Contains(events[0].Text, "harbor is known from now on") {
		s.Errorf("%+v, %v: whoever writes the same says nothing new", events, err)
	}
	c.Flux.Revision, c.Seen = "main@sha1:b", Clock().Add(time.Hour)
	if err := s.any().PutCluster(s.Context(), c); err != nil {
		s.Error(err)
	}
	s.otherCluster(c)
	rotated := c
	rotated.CA = digest.Of([]byte("a new CA of the same cluster"))
	if err := s.any().PutCluster(s.Context(), rotated); err != nil {
		s.Error(err)
	}
	if err := s.any().ForgetCluster(s.Context(), "lab", c.CA); !errors.Is(err, ledger.ErrUnknown) {
		s.Errorf("forgetting a CA that is not recorded: %v", err)
	}
	for range 2 {
		if err := s.any().ForgetCluster(s.Context(), "lab", rotated.CA); err != nil {
			s.Error(err)
		}
	}
	if _, err := s.any().Cluster(s.Context(), "lab"); !errors.Is(err, ledger.ErrUnknown) {
		s.Errorf("a forgotten cluster: %v", err)
	}
}

// manyPut: all members write the same at once.
func (s *suite) manyPut(c identity.Cluster) {
	var wait sync.WaitGroup
	for _, m := range s.members {
		wait.Go(func() {
			if err := m.PutCluster(s.Context(), c); err != nil {
				s.Error(err)
			}
		})
	}
	wait.Wait()
}

func (s *suite) otherCluster(c identity.Cluster) {
	other := Cluster()
	other.CA, other.UID = digest.Of([]byte("another")), "u-2"
	if err := s.any().PutCluster(s.Context(), other); exit.Of(err) != exit.Refused {
		s.Errorf("another cluster: %v", err)
	}
	if err := s.any().PutCluster(s.Context(), identity.Cluster{Environment: "lab"}); err == nil {
		s.Error("a cluster without a CA")
	}
	if got, err := s.any().Cluster(s.Context(), "lab"); err != nil || !reflect.DeepEqual(got, c) {
		s.Errorf("%+v, %v\nwant %+v", got, err, c)
	}
	prod := other
	prod.Environment = "prod"
	if err := s.any().PutCluster(s.Context(), prod); err != nil {
		s.Errorf("another environment: %v", err)
	}
}
