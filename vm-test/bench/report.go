package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Build is one image as a builder made it. Sizes are in bytes.
type Build struct {
	Builder string  `json:"builder"`
	Seconds float64 `json:"seconds"`
	Disk    int64   `json:"disk"`   // space that the raw image occupies
	Packed  int64   `json:"packed"` // compressed with zstd
}

// Boots are the times from power-on to "cloud-init finished", in seconds.
type Boots struct {
	Image string    `json:"image"`
	First []float64 `json:"first"` // with a fresh disk
	Later []float64 `json:"later"` // with the same disk, after it was switched off
}

// Report is one run of the benchmark.
type Report struct {
	Machine string  `json:"machine"`
	Accel   string  `json:"accel"`
	Builds  []Build `json:"builds"` // ours first
	Boots   []Boots `json:"boots"`  // ours first
}

// MaxBootRatio is how much longer than the plain image ours may take to boot
// (issue 2, "Must show" 2).
const MaxBootRatio = 1.25

// FirstRatio is the ratio of the medians of the first boots, ours to the plain image.
func (r Report) FirstRatio() float64 {
	return median(r.Boots[0].First) / median(r.Boots[1].First)
}

// LaterRatio is the same for later boots.
func (r Report) LaterRatio() float64 {
	return median(r.Boots[0].Later) / median(r.Boots[1].Later)
}

// Text writes the report as tables; the last column is ours divided by the other's.
func (r Report) Text(w io.Writer) error {
	fmt.Fprintf(w, "machine: %s; accelerator: %s\n\n", r.Machine, r.Accel)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "build\ttime\tours\tspace of the raw image\tours\tzstd\tours")
	for _, b := range r.Builds {
		o := r.Builds[0]
		fmt.Fprintf(tw, "%s\t%.0f s\t%.2f\t%.0f MiB\t%.2f\t%.0f MiB\t%.2f\n", b.Builder,
			b.Seconds, o.Seconds/b.Seconds, mib(b.Disk), ratio(o.Disk, b.Disk), mib(b.Packed), ratio(o.Packed, b.Packed))
	}
	fmt.Fprintln(tw, "\npower-on to cloud-init finished\tfirst boot, median\tours\tlater boots, median\tours\tsingle values")
	for _, b := range r.Boots {
		o := r.Boots[0]
		fmt.Fprintf(tw, "%s\t%.1f s\t%.2f\t%.1f s\t%.2f\t%.1f / %.1f\n", b.Image,
			median(b.First), median(o.First)/median(b.First), median(b.Later), median(o.Later)/median(b.Later), b.First, b.Later)
	}
	return tw.Flush()
}

// JSON writes the report for programs.
func (r Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// median of a non-empty list; of an even number of values the mean of the middle two.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func ratio(a, b int64) float64 { return float64(a) / float64(b) }
