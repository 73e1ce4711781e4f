package diag

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestFindingPointsAtTheColumn(t *testing.T) {
	f := Finding{Pos: Pos{"lab.yaml", 2, 3}, Path: "nodes", Message: "unknown key", Source: "\tnodse: []", Hint: "did you mean nodes?"}
	want := "lab.yaml:2:3: unknown key (nodes)\n     nodse: []\n      ^\n    hint: did you mean nodes?"
	if got := f.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFindingObeysNoDocument(t *testing.T) {
	f := Finding{Pos: Pos{"a", 1, 6}, Path: "\x1b[31mred", Message: "m", Source: "\x1b[2J: x\u0085y"}
	if got := f.String(); strings.ContainsAny(got, "\x1b\u0085") || !strings.Contains(got, "\n         ^") {
		t.Errorf("%q", got)
	}
}

func TestPos(t *testing.T) {
	for want, p := range map[string]Pos{"-": {}, "f": {File: "f"}, "f:1": {File: "f", Line: 1}, "f:1:2": {"f", 1, 2}} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestListSortsAndCounts(t *testing.T) {
	var l List
	if l.Err() != nil {
		t.Error("an empty list is an error")
	}
	l.Add(Finding{Pos: Pos{"b", 1, 1}, Message: "third"})
	l.Add(Finding{Pos: Pos{"a", 2, 1}, Message: "second"})
	l.Add(Finding{Pos: Pos{"a", 1, 9}, Message: "first"})
	want := "a:1:9: first\na:2:1: second\nb:1:1: third\n3 findings"
	if got := l.Err().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHintOf(t *testing.T) {
	inner := WithHint(errors.New("x"), "inner")
	if got := HintOf(fmt.Errorf("y: %w", inner)); got != "inner" {
		t.Errorf("got %q", got)
	}
	if got := HintOf(WithHint(inner, "outer")); got != "outer" {
		t.Errorf("got %q, the outermost knows best", got)
	}
	if WithHint(nil, "h") != nil || HintOf(errors.New("x")) != "" {
		t.Error("nothing became something")
	}
}
