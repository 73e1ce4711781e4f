package pxebench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/slipway/slipway/vm-test/netns"
)

// The flags of make bench. They are read by tests only, and before any runs.
var (
	full = flag.Bool("bench-run", false, "measure in earnest, a few minutes")
	out  = flag.String("bench-out", "", "write the results as JSON to this file")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if role := os.Getenv(roleVariable); role != "" {
		serveAs(role)
		return
	}
	os.Exit(netns.Main(m))
}

// result is one line of the table.
type result struct {
	What   string  `json:"what"`
	Server string  `json:"server"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	P99    float64 `json:"p99ms,omitempty"`
	CPU    float64 `json:"cpu"`   // microseconds of the server's processor time for one offer, or one MB; 0 when not known
	Ratio  float64 `json:"ratio"` // of pxed's value to this one's
	Note   string  `json:"note,omitempty"`
}

// report computes the ratios, prints the table and writes the JSON.
func report(t *testing.T, name string, results []result) {
	t.Helper()
	ours := map[string]float64{}
	for _, r := range results {
		if r.Server == "pxed" {
			ours[r.What] = r.Value
		}
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "what\tserver\tvalue\tp99 ms\tcpu µs\tpxed is\t")
	for i, r := range results {
		if r.Value > 0 {
			results[i].Ratio = ours[r.What] / r.Value
		}
		p99 := ""
		if r.P99 > 0 {
			p99 = fmt.Sprintf("%.2f", r.P99)
		}
		fmt.Fprintf(w, "%s\t%s\t%.0f %s\t%s\t%.1f\t%.2f times\t%s\n", r.What, r.Server, r.Value, r.Unit, p99, r.CPU, results[i].Ratio, r.Note)
	}
	w.Flush()
	t.Logf("%s\n%s", name, text.String())
	if *out == "" {
		return
	}
	b, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strings.TrimSuffix(*out, ".json")+"-"+name+".json", append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
