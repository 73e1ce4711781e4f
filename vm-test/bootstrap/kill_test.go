package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/vm-test/controlplane"
)

// A run that is killed after every step that did something, again and again, comes
// to the same end as one that nobody disturbs.
func (s *suite) killedBetweenSteps(t *testing.T) {
	p := controlplane.Start(t, controlplane.Options{})
	r := newRig(t, s.parts, p.KubeconfigBytes())
	r.standInNodes(t)
	var killedAfter []string
	for {
		c := s.start(t, p.KubeconfigBytes(), envBlock+"=1")
		line := c.await(t, "done ", "all steps are done")
		if strings.HasPrefix(line, "all") {
			s.cheap(t, r, costs(t, line))
			break
		}
		c.kill()
		killedAfter = append(killedAfter, line)
	}
	t.Logf("killed after: %s", strings.Join(killedAfter, "; "))
	if n := len(killedAfter); n != s.steps {
		t.Errorf("killed %d times; an undisturbed run does %d steps", n, s.steps)
	}
	s.converged(t, r)
}

// cheap checks what a run with nothing to do costs in a process of its own.
func (s *suite) cheap(t *testing.T, r *rig, c cost) {
	t.Helper()
	objects := int64(r.owned(t))
	t.Logf("a run with nothing to do: %d objects, %d requests, at most %d MiB", objects, c.requests, c.peak>>20)
	if c.requests > 3*objects {
		t.Errorf("%d requests for %d objects, more than 3 each", c.requests, objects)
	}
	if c.peak > 300<<20 {
		t.Errorf("it used %d MiB, more than 300", c.peak>>20)
	}
}

// A run that is killed with every fifteenth write in flight, inside of steps and of
// Helm's work, comes to the same end.
func (s *suite) killedInsideSteps(t *testing.T) {
	p := controlplane.Start(t, controlplane.Options{})
	r := newRig(t, s.parts, p.KubeconfigBytes())
	r.standInNodes(t)
	g := newGate(t, p)
	kills := 0
	for ; kills < 50; kills++ {
		since := time.Now()
		g.until(func(w write) bool { return w.n == 15 })
		c := s.start(t, g.kubeconfig())
		end := s.ends(t, c, g)
		t.Logf("%s after %s", end, time.Since(since).Round(100*time.Millisecond))
		if end == "done" {
			break
		}
	}
	t.Logf("killed %d times", kills)
	if kills < 5 {
		t.Errorf("killed only %d times", kills)
	}
	s.converged(t, r)
}

// ends waits for a child to be done, or kills it when the gate holds it, and says which.
func (s *suite) ends(t *testing.T, c *child, g *gate) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		select {
		case w := <-g.held:
			c.kill()
			return "killed at " + w.String()
		case line, ok := <-c.lines:
			if strings.HasPrefix(line, "all steps are done") {
				return "done"
			}
			c.said.WriteString(line + "\n")
			if !ok {
				t.Fatalf("the run failed:\n%s", c.said.String())
			}
		case <-ctx.Done():
			t.Fatalf("the run is neither done nor held after %s:\n%s", patience, c.said.String())
		}
	}
}

// converged compares a cluster with that of the undisturbed run.
func (s *suite) converged(t *testing.T, r *rig) {
	t.Helper()
	if did, _ := r.mustRun(t, r.steps(t)); did != 0 {
		t.Errorf("one more run still does %d steps", did)
	}
	if moved := moved(s.content, r.content(t)); len(moved) > 0 {
		t.Errorf("these are not as after an undisturbed run: %s", strings.Join(moved, ", "))
	}
	r.oneHistory(t)
}

// oneHistory checks Helm's records: one release, one revision of it deployed, and
// that is the newest; nothing is pending.
func (r *rig) oneHistory(t *testing.T) (revisions []string) {
	t.Helper()
	secrets, err := r.client.List(t.Context(), "v1", "Secret", "", "owner=helm")
	must(t, err)
	deployed, newest := int64(0), int64(0)
	for _, s := range secrets {
		label := func(key string) string { return object.Text(s, "metadata", "labels", key) }
		if object.Of(s).Namespace != "kube-system" || label("name") != "cilium" {
			t.Errorf("record of another release: %s", object.Of(s))
		}
		var n int64
		fmt.Sscan(label("version"), &n)
		newest = max(newest, n)
		revisions = append(revisions, fmt.Sprintf("%03d %s", n, label("status")))
		if label("status") == "deployed" {
			if deployed != 0 {
				t.Errorf("revisions %d and %d are both deployed", deployed, n)
			}
			deployed = n
		}
		if strings.HasPrefix(label("status"), "pending") {
			t.Errorf("revision %d is %s", n, label("status"))
		}
	}
	slices.Sort(revisions)
	if deployed == 0 || deployed != newest {
		t.Errorf("not the newest revision is deployed: %s", strings.Join(revisions, ", "))
	}
	return revisions
}
