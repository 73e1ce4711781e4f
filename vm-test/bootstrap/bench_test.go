package bootstrap

import (
	"bufio"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/chart"
	"github.com/slipway/slipway/vm-test/controlplane"
)

var benchRun = flag.Bool("bench-run", false, "measure; takes a minute on an idle machine")

// What a run with nothing to do may cost (issue 4, "Must show" 9). Requests and memory
// are also checked by TestInstall.
const (
	maxTime   = 10 * time.Second
	maxRender = 5 * time.Second // of all charts, twice, as the parity gate does
	rounds    = 5
)

// TestBench measures a run that finds everything as it is wanted, in a process of its
// own, and the rendering of the charts.
func TestBench(t *testing.T) {
	if !*benchRun {
		t.Log("not measuring: make bench does (-bench-run)")
		return
	}
	s := &suite{parts: load(t)}
	p := controlplane.Start(t, controlplane.Options{})
	r := newRig(t, s.parts, p.KubeconfigBytes())
	r.standInNodes(t)
	since := time.Now()
	did, _ := r.mustRun(t, r.steps(t))
	t.Logf("an empty cluster: %d steps, %d objects, %s", did, r.owned(t), time.Since(since).Round(10*time.Millisecond))

	var times []int64
	var last cost
	for range rounds {
		last = costs(t, s.start(t, p.KubeconfigBytes()).await(t, "all steps are done"))
		times = append(times, last.milliseconds)
	}
	slices.Sort(times)
	t.Logf("nothing to do: %d ms (median of %v), %d requests for %d objects, at most %d MiB", times[rounds/2], times, last.requests, r.owned(t), last.peak>>20)
	if took := time.Duration(times[rounds/2]) * time.Millisecond; took > maxTime {
		t.Errorf("it took %s, more than %s", took, maxTime)
	}

	since = time.Now()
	for range 2 {
		_, err := chart.Render(r.release(nil), chart.Caps{Kubernetes: kubernetes})
		must(t, err)
	}
	t.Logf("rendering the charts for both sides: %s", time.Since(since).Round(time.Millisecond))
	if took := time.Since(since); took > maxRender {
		t.Errorf("rendering took %s, more than %s", took, maxRender)
	}
}

// peak is the most memory that this process has had (VmHWM), in bytes.
func peak(t testing.TB) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	must(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			must(t, err)
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
