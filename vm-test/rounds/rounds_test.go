package rounds

import (
	"os"
	"strings"
	"testing"
	"time"
)

func table() *Table {
	t := &Table{
		Title: "loaves", Columns: []Column{{"loaves/s", 0}, {"ms", 1}}, Names: []string{"ours", "theirs", "absent"},
		Aims: []Aim{{Column: "loaves/s", To: "theirs", Least: 1}, {Column: "ms", To: "theirs", Most: 1.3}},
	}
	// The machine was busy in the second round; ours is twice as fast in each.
	for _, v := range []float64{100, 10, 200} {
		t.Add("ours", 2*v, 3)
		t.Add("theirs", v, 2)
	}
	return t
}

func TestRatiosAreThoseOfARound(t *testing.T) {
	tab := table()
	if got := tab.Median("ours", 0); got != 200 {
		t.Errorf("median %v", got)
	}
	if got := tab.Ratio("theirs", 0); got != 2 {
		t.Errorf("ratio %v", got)
	}
	if got := tab.Missed(); len(got) != 1 || got[0] != "loaves: ms is 1.50 times that of theirs, at most 1.30 is wanted" {
		t.Errorf("missed %q", got)
	}
	var b strings.Builder
	if err := tab.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"medians of 3 rounds", "2.00 times", "1.50 times", "aim: loaves/s at least 1.00 times that of theirs: met", "MISSED"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "absent") {
		t.Errorf("what was not measured is there:\n%s", b.String())
	}
}

func TestUnknownStaysUnknown(t *testing.T) {
	tab := table()
	tab.Add("ours", 1, 1)
	tab.Add("theirs", Unknown(), 1)
	if got := tab.cells("theirs"); !strings.HasPrefix(got, "-\t-\t") {
		t.Errorf("got %q", got)
	}
	var b strings.Builder
	if err := JSON(&b, tab); err != nil || strings.Contains(b.String(), "NaN") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestEverybodyIsOnceFirst(t *testing.T) {
	first := map[string]bool{}
	for round := range 3 {
		first[table().Order(round)[0]] = true
	}
	if len(first) != 3 {
		t.Errorf("first were %v", first)
	}
}

func TestCPU(t *testing.T) {
	before := CPU(os.Getpid())
	for n := 0; CPU(os.Getpid()) < before+20*time.Millisecond; n++ {
		if n > 1e8 {
			t.Fatal("the clock stands still")
		}
	}
}
