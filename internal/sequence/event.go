package sequence

import "time"

// Kind says what happened to a step.
type Kind string

// The kinds of events, in the order in which a step can have them.
const (
	Planned Kind = "planned" // it would do its changes
	Skipped Kind = "skipped" // it was true already
	Started Kind = "started"
	Waiting Kind = "waiting" // it says what it waits for
	Done    Kind = "done"    // it is true now, and was seen to be
	Failed  Kind = "failed"
	Drifted Kind = "drifted" // it is not as bootstrap made it, and that is for its owner
)

// Event is one line of the story of a run.
type Event struct {
	Time     time.Time  `json:"time"`
	Kind     Kind       `json:"kind"`
	Layer    string     `json:"layer"`
	Step     string     `json:"step"`
	Node     string     `json:"node,omitempty"`
	Words    string     `json:"words,omitempty"`    // what it waits for, or why it failed
	Changes  []Change   `json:"changes,omitempty"`  // of Planned, Started
	Since    *time.Time `json:"since,omitempty"`    // when the step started
	Deadline *time.Time `json:"deadline,omitempty"` // when it gives up
	Unseen   bool       `json:"unseen,omitempty"`   // planned without having looked
}
