package repro

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/imagebuild/verify/compare"
)

// maxMemory is the most that imagebuild itself may occupy, in bytes (issue 2,
// "Must show" 6). The programs that it starts are not counted.
const maxMemory = 400 << 20

// TestBuild makes the lab image twice, at the same time, as differently as can
// be, and goes on with what came out of it.
func TestBuild(t *testing.T) {
	mine, theirs := open(t, "mine"), open(t, "theirs")
	mine.makeKey(t)
	theirs.takeKey(t, mine)
	mine.fill(t)
	theirs.fill(t)
	mine.env = append(mine.env, "TZ=UTC", "LANG=C.UTF-8", "GOMAXPROCS=2")
	theirs.env = append(theirs.env, "TZ=Asia/Kathmandu", "LANG=tr_TR.UTF-8", "LC_ALL=tr_TR.UTF-8", "GOMAXPROCS=1")
	theirs.asOther(t)
	t.Run("made", func(t *testing.T) {
		t.Run("after kills", func(t *testing.T) {
			t.Parallel()
			checkMemory(t, mine.survivesKills(t))
		})
		t.Run("by another user", func(t *testing.T) {
			t.Parallel()
			checkMemory(t, theirs.succeed(t))
		})
	})
	if t.Failed() {
		t.Fatal("without two builds there is nothing to compare")
	}
	t.Run("same bits", func(t *testing.T) { checkSame(t, mine, theirs) })
	t.Run("rebuilt", func(t *testing.T) {
		t.Run("and the same", func(t *testing.T) {
			t.Parallel()
			rebuildAgrees(t, mine)
		})
		t.Run("and not the same", func(t *testing.T) {
			t.Parallel()
			rebuildDisagrees(t, theirs)
		})
	})
	t.Run("foreign readers", func(t *testing.T) { readByOthers(t, mine) })
	t.Run("killed while replacing", func(t *testing.T) { mine.survivesKillsLate(t) })
	for name, fail := range map[string]func(*testing.T, *workshop){
		"full disk": fullDisk, "full cache": fullCache, "no archive": noArchive,
		"missing tool": missingTool, "wrong digest": wrongDigest, "archive moved on": movedOn,
	} {
		t.Run(name, func(t *testing.T) { fail(t, mine) })
	}
}

func checkMemory(t *testing.T, o outcome) {
	t.Helper()
	t.Logf("built in %.0f s, imagebuild took %d MiB", o.took.Seconds(), o.peak>>20)
	if o.peak == 0 || o.peak > maxMemory {
		t.Errorf("imagebuild took %d bytes of memory, at most %d are allowed", o.peak, maxMemory)
	}
}

// checkSame compares two builds bit by bit.
func checkSame(t *testing.T, mine, theirs *workshop) {
	a, b := mine.path("out", "lab"), theirs.path("out", "lab")
	found, err := differences(a, b)
	must(t, err)
	if len(found) > 0 {
		first, err := compare.Builds(t.Context(), a, b)
		t.Fatalf("the two builds differ: %v, %v\nall files that differ:\n%s", first, err, strings.Join(found, "\n"))
	}
}
