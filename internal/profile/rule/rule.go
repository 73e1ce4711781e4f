// Package rule holds what must be true of a cluster as a whole: that ranges do
// not overlap, that a quorum is possible, that nothing is given twice. Shapes of
// single values are package form's.
//
// Every rule is one small function. A rule says nothing about values that are
// missing or unusable, because the decoder has done so already.
package rule

import "github.com/slipway/slipway/internal/cluster"

// Report receives what is wrong at a dotted path, and what to do about it.
type Report func(path, message, hint string)

// Check applies all rules to c. With partial, for a base alone, only the rules
// about what a base can decide.
func Check(c *cluster.Cluster, partial bool, report Report) {
	for _, r := range rules() {
		if !partial || r.base {
			r.check(c, report)
		}
	}
}

// rule is one check. base marks those that hold without an overlay.
type rule struct {
	check func(*cluster.Cluster, Report)
	base  bool
}

func rules() []rule { return nil }
