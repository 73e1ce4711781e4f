package bootstrap

import (
	"bufio"

	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/chart"
)

// rendering bounds the rendering of all charts (issue 4, "Must show" 9).
const rendering = 5 * time.Second

// BenchmarkRender renders Cilium's chart for the parity gate: what runs, and what the
// repository wants.
func BenchmarkRender(b *testing.B) {
	p := load(b)
	r := &rig{parts: p}
	for b.Loop() {
		if _, err := chart.Render(r.release(nil), chart.Caps{Kubernetes: kubernetes}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(peak(b))/(1<<20), "MiB-peak")
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
