package main

import (
	"io"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/exit"
)

// Scripts see only success and failure; these are the codes behind them.
func TestProfileExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		want exit.Code
	}{
		{"validate -p ../../profiles", exit.OK},
		{"validate -p none.yaml", exit.Usage},
		{"validate -o xml", exit.Usage},
		{"validate extra", exit.Usage},
		{"profile show -p none.yaml", exit.Usage},
		{"schema --check none.json", exit.Failed},
		{"schema --check ../../profiles/schema.json", exit.OK},
	} {
		if got := run(strings.Fields(c.args), strings.NewReader(""), io.Discard, io.Discard); got != int(c.want) {
			t.Errorf("imagebuild %s: exit code %d, not %d", c.args, got, c.want)
		}
	}
}
