package bench

import (
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 3}, 2.5}} {
		if got := median(c.in); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.in, got, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	r := Report{
		Machine: "m", Accel: "tcg",
		Builds: []Build{{"ours", 30, 100 << 20, 50 << 20}, {"theirs", 60, 200 << 20, 200 << 20}},
		Boots:  []Boots{{"ours", []float64{55, 60, 50}, []float64{40}}, {"plain", []float64{50, 44, 70}, []float64{32}}},
	}
	if r.FirstRatio() != 1.1 || r.LaterRatio() != 1.25 {
		t.Errorf("ratios %v and %v, want 1.1 and 1.25", r.FirstRatio(), r.LaterRatio())
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"theirs", "60 s", "0.50", "0.25", "55.0 s", "1.10", "1.25"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &text)
		}
	}
}
