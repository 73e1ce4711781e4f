package pin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/pin"
)

func TestCovers(t *testing.T) {
	if err := sample().Covers(wanted(), "profiles/x.yaml"); err != nil {
		t.Fatalf("a lock that fits: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*pin.Wanted)
		say    string
	}{
		"package added":     {func(w *pin.Wanted) { w.Sets[2].Packages = []string{"apt", "vim", "zstd"} }, "package vim is not locked"},
		"package removed":   {func(w *pin.Wanted) { w.Sets[2].Packages = []string{"apt"} }, "package zstd is no longer wanted"},
		"other kernel":      {func(w *pin.Wanted) { w.Sets[0].Packages = []string{"linux-image-cloud-amd64"} }, "package linux-image-cloud-amd64 is not locked"},
		"new set":           {func(w *pin.Wanted) { w.Sets = append(w.Sets, pin.WantedSet{Name: "tools"}) }, "package set tools is not locked"},
		"suite":             {func(w *pin.Wanted) { w.Suite = "forky" }, `debian.suite is "forky", locked is "trixie"`},
		"components":        {func(w *pin.Wanted) { w.Components = []string{"main"} }, `debian.components is "main"`},
		"version raised":    {func(w *pin.Wanted) { w.Artifacts[0].Version = "1.20.3" }, "cilium-chart is wanted in version 1.20.3, locked is 1.20.2"},
		"source changed":    {func(w *pin.Wanted) { w.Artifacts[2].Source = "../other" }, "tool is wanted from ../other, locked is ../build/tool"},
		"artifact added":    {func(w *pin.Wanted) { w.Artifacts = append(w.Artifacts, pin.Artifact{Name: "new", Version: "2"}) }, "new 2 is not locked"},
		"bringer unwanted":  {func(w *pin.Wanted) { w.Artifacts = w.Artifacts[1:] }, "artifact quay.io/x/y:v1 is no longer wanted"},
		"artifact unwanted": {func(w *pin.Wanted) { w.Artifacts = w.Artifacts[:2] }, "artifact tool is no longer wanted"},
	} {
		t.Run(name, func(t *testing.T) {
			w := wanted()
			c.change(&w)
			err := sample().Covers(w, "profiles/x.yaml")
			if !errors.Is(err, pin.ErrStale) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("got %v, want %q", err, c.say)
			}
			if hint := diag.HintOf(err); hint != "run imagebuild pin -p profiles/x.yaml" {
				t.Errorf("hint %q", hint)
			}
		})
	}
}

func TestCoversNamesEverythingAtOnce(t *testing.T) {
	w := wanted()
	w.Sets[2].Packages = []string{"apt", "vim", "nano"}
	err := sample().Covers(w, "x")
	for _, say := range []string{"vim", "nano", "zstd"} {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("%q is missing in: %v", say, err)
		}
	}
}
