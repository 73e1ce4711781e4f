package volumetest

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/bootstrap/volume"
)

// Compare checks what was judged of a case.
func Compare(t testing.TB, c Case, got []volume.Risk) {
	t.Helper()
	if len(got) != len(c.Risks) {
		t.Errorf("%v are at risk, not %q", got, c.Risks)
		return
	}
	for i, want := range c.Risks {
		if !strings.HasPrefix(got[i].String(), want) {
			t.Errorf("%q, not %q", got[i], want)
		}
	}
}
