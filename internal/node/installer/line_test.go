package installer

import (
	"strings"
	"testing"
)

func TestParseLine(t *testing.T) {
	for text, want := range map[string]Line{
		"": {},
		"quiet slipway.slot=a slipway.roothash=00": {},
		"slipway.mode=install slipway.server=http://10.0.0.1:8080 slipway.ticket=ab slipway.mac=52-54-00-AB-CD-EF": {Mode: "install", Server: "http://10.0.0.1:8080", Ticket: "ab", MAC: "52:54:00:ab:cd:ef"},
		"slipway.mode=install": {Mode: "install"},
		"slipway.mode=inventory slipway.server=http://x slipway.mode=install slipway.ticket=t": {Mode: "install", Server: "http://x", Ticket: "t"},
	} {
		got, err := ParseLine(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"slipway.mode=instal":                          "want install or inventory",
		"slipway.mode=inventory":                       "nobody to report to",
		"slipway.mode=install slipway.server=http://x": "needs a ticket",
		"slipway.mode=install slipway.mac=52":          "slipway.mac=52",
	} {
		got, err := ParseLine(text)
		if err == nil || !strings.Contains(err.Error(), says) || got.Mode == "" {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
