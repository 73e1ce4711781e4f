package facts

import "time"

// Seen is what one node said when it was asked, or why it could not be.
type Seen struct {
	Node  string
	Err   error
	Facts Facts
	// Ahead and Behind bound how far the node's clock is ahead of ours: the question
	// took some time, and the answer was given somewhere within. A negative value is
	// behind.
	Behind, Ahead time.Duration
	// DropIns are the files in config.yaml.d by name. They may hold secrets, so they
	// are judged and never shown.
	DropIns map[string][]byte
}

// Off is by how much the node's clock is ahead of ours for certain; zero when they
// may be the same.
func (s Seen) Off() time.Duration { return outside(s.Behind, s.Ahead) }

// Apart is by how much the clocks of two nodes differ for certain.
func (s Seen) Apart(o Seen) time.Duration { return outside(s.Behind-o.Ahead, s.Ahead-o.Behind) }

// outside is how far an interval lies from zero.
func outside(least, most time.Duration) time.Duration {
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	}
	return 0
}
