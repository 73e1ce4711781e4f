// Package progress is how long work says what it is doing. Makers receive a
// Reporter and never know whether a terminal, a log or nothing is behind it.
package progress

// Reporter starts tasks. Implementations are safe for concurrent use.
type Reporter interface {
	// Start announces a task. total is the expected amount in bytes, 0 when
	// it is not known or when the task does not count bytes.
	Start(name string, total int64) Task
}

// Task is one piece of work that is under way.
type Task interface {
	// Add reports n more bytes done.
	Add(n int64)
	// Done ends the task; a nil err means it succeeded. A note, such as
	// "cached", is shown beside the name.
	Done(note string, err error)
}

// Nop is a Reporter that says nothing.
type Nop struct{}

// Start implements Reporter.
func (Nop) Start(string, int64) Task { return nopTask{} }

type nopTask struct{}

func (nopTask) Add(int64)          {}
func (nopTask) Done(string, error) {}
