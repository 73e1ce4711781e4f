package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
)

// TestRemovable: a removal never leaves fewer voters that answer than a majority.
func TestRemovable(t *testing.T) {
	// A letter a member: V votes and answers, v votes and is dead, S and s stand by.
	// The first is the one that is asked.
	for _, tt := range []struct {
		members string
		remove  int
		says    string
	}{
		{"VVv", 2, ""}, {"VVVvv", 4, ""}, {"Vs", 1, ""}, {"VVVs", 3, ""}, {"VVvS", 2, ""},
		{"V", 0, "is alive"}, {"VVV", 1, "is alive"}, {"VS", 1, "is alive"},
		// Those that answer may be seen by the leader and not from here.
		{"Vvv", 1, "2 of 2 voting members have to answer, and 1 do"},
		{"VVvvv", 4, "3 of 4 voting members have to answer, and 2 do"},
		{"Vvs", 2, "2 of 2 voting members have to answer, and 1 do"},
	} {
		var all []Member
		for i, c := range tt.members {
			role := "voter"
			if c == 'S' || c == 's' {
				role = "stand-by"
			}
			all = append(all, Member{Address: fmt.Sprint("m", i), Role: role, Self: i == 0, Answers: c < 'a'})
		}
		_, err := removable(all, all[tt.remove].Address)
		switch {
		case tt.says == "" && err != nil, tt.says != "" && err == nil:
			t.Errorf("%s without %d: %v", tt.members, tt.remove, err)
		case err != nil && (!errors.Is(err, ErrStays) || !strings.Contains(err.Error(), tt.says) || diag.HintOf(err) == ""):
			t.Errorf("%s without %d: %v", tt.members, tt.remove, err)
		}
	}
	if _, err := removable([]Member{{Address: "m0"}}, "m9"); !errors.Is(err, ErrUnknown) || !strings.Contains(diag.HintOf(err), "m0") {
		t.Errorf("%v", err)
	}
}
