// Package run is one execution of a story as it is kept in the ledger: who runs it,
// since when, and how far each step has come. A run that has no end was killed, or
// still runs; the next one goes on where it stopped.
package run

import (
	"time"

	"github.com/slipway/slipway/internal/digest"
)

// Record is one execution of a story.
type Record struct {
	ID      string        `json:"id"` // chosen by who runs it
	Story   string        `json:"story"`
	Subject string        `json:"subject,omitempty"` // such as the node that is rebuilt
	Plan    digest.Digest `json:"plan,omitzero"`
	Owner   string        `json:"owner"` // who runs it, where
	Started time.Time     `json:"started"`
	Ended   time.Time     `json:"ended,omitzero"` // zero: it runs, or was killed
	Outcome string        `json:"outcome,omitempty"`
	Steps   []Step        `json:"steps,omitempty"`
}

// Open reports whether the run has not ended.
func (r Record) Open() bool { return r.Ended.IsZero() }

// Step is how far one step of a run has come. Stories choose the states.
type Step struct {
	Name  string    `json:"name"`
	State string    `json:"state"`
	At    time.Time `json:"at"`
	Note  string    `json:"note,omitempty"`
}

// Step is the step of that name; its state is empty when the run never came to it.
func (r Record) Step(name string) Step {
	for _, s := range r.Steps {
		if s.Name == name {
			return s
		}
	}
	return Step{Name: name}
}

// Filter chooses runs. Empty fields choose all.
type Filter struct {
	Story   string
	Subject string
	Open    bool // only those that have not ended
	Limit   int  // at most so many, the newest; 0 means 100
}

// DefaultLimit is how many runs are given when nobody says how many.
const DefaultLimit = 100
