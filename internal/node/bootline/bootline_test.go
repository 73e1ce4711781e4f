package bootline

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
)

const hash = "2b4d7a6116c2d9066ea04e3409e99b3d144be6891051969c5ed2ee07acd3649f"

func TestParse(t *testing.T) {
	tests := []struct {
		name, line string
		want       Line
		err        string
	}{
		{"full", "slipway.slot=a slipway.roothash=" + hash + " slipway.shell=1 slipway.reboot=5 console=ttyS0 panic=10",
			Line{"a", hash, true, 5 * time.Second}, ""},
		{"defaults", "quiet slipway.slot=b slipway.roothash=" + strings.ToUpper(hash), Line{"b", hash, false, DefaultReboot}, ""},
		{"wait for ever", "slipway.slot=a slipway.reboot=0 slipway.roothash=" + hash, Line{"a", hash, false, 0}, ""},
		{"last counts", "slipway.slot=a slipway.slot=b slipway.roothash=" + hash, Line{"b", hash, false, DefaultReboot}, ""},
		{"unknown words are left alone", "slipway.future=1 slipway.slot=a slipway.roothash=" + hash + "\n", Line{"a", hash, false, DefaultReboot}, ""},
		{"no slot", "slipway.roothash=" + hash, Line{"", hash, false, DefaultReboot}, "names no slot"},
		{"no hash", "slipway.slot=a slipway.shell=1", Line{"a", "", true, DefaultReboot}, "no root hash"},
		{"bad slot", "slipway.slot=c slipway.shell=1", Line{"", "", true, DefaultReboot}, "neither a nor b"},
		{"short hash", "slipway.slot=a slipway.roothash=abcd", Line{"a", "", false, DefaultReboot}, "not a SHA-256"},
		{"bad seconds", "slipway.slot=a slipway.reboot=-1 slipway.roothash=" + hash, Line{"a", hash, false, DefaultReboot}, "not a number of seconds"},
		{"empty", "", Line{Reboot: DefaultReboot}, "names no slot"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(tt.line)
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if err != nil && diag.HintOf(err) == "" {
				t.Errorf("error %v has no hint", err)
			}
		})
	}
}

func TestOther(t *testing.T) {
	if got := (Line{Slot: "a"}).Other() + (Line{Slot: "b"}).Other(); got != "ba" {
		t.Errorf("got %s", got)
	}
}
