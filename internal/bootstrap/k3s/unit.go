package k3s

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/sequence"
)

// start starts k3s, or starts it again with what was written; one that is on its way
// with the right configuration is left alone. It returns where its journal begins to
// count, by the node's own clock: from now on, because what was said before may have
// been mended since, and what was not is said again with the next try.
func (o Options) start(ctx context.Context, s standing, name string, tell sequence.Tell) (run journal, err error) {
	unit, act := k3sconf.Unit(s.node(name).Role), ""
	switch {
	case !s.k.Running():
		act = "systemctl reset-failed " + unit + " 2>/dev/null; systemctl start --no-block " + unit
	case len(s.unequal.files) > 0:
		act = "systemctl restart --no-block " + unit
	default:
		act = ":"
	}
	if act != ":" {
		tell("starting " + unit)
	}
	out, err := o.Node(name).Run(ctx, "date +%s; "+act, nil)
	if err != nil {
		return journal{}, fmt.Errorf("starting %s: %w", unit, err)
	}
	since, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return journal{}, fmt.Errorf("%s: its clock says %.40q", name, out)
	}
	return journal{unit, since}, nil
}

// journal is what is read of a unit's: from when on, in seconds since 1970.
type journal struct {
	unit  string
	since int64
}

// unit is how systemd sees k3s.
type unit struct {
	active   string // ActiveState
	result   string // Result
	skipped  bool   // a condition kept it from starting
	restarts int
	lines    []string // of the journal
}

// ask looks at k3s's unit and its journal.
func (o Options) ask(ctx context.Context, node string, j journal) (unit, error) {
	out, err := o.Node(node).Run(ctx, fmt.Sprintf(
		"systemctl show --property=ActiveState,Result,ConditionResult,NRestarts,Job %[1]s; echo; journalctl --unit=%[1]s --since=@%[2]d --output=cat --no-pager --lines=400", j.unit, j.since), nil)
	if err != nil {
		return unit{}, err
	}
	return parseUnit(string(out)), nil
}

// parseUnit reads properties, an empty line, and the journal.
func parseUnit(text string) unit {
	waits := false // a job for the unit has not run yet, and its conditions have not been looked at
	properties, rest, _ := strings.Cut(text, "\n\n")
	u := unit{lines: strings.Split(strings.TrimSpace(rest), "\n")}
	for line := range strings.Lines(properties) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "ActiveState":
			u.active = value
		case "Result":
			u.result = value
		case "ConditionResult":
			u.skipped = value == "no"
		case "Job":
			waits = value != "" && value != "0"
		case "NRestarts":
			u.restarts, _ = strconv.Atoi(value)
		}
	}
	u.skipped = u.skipped && u.active == "inactive" && !waits
	return u
}

// await waits until k3s runs, what arrived says, and the cluster has let the node in.
// A cause that waiting does not mend ends it at once.
func (o Options) await(ctx context.Context, name string, j journal, tell sequence.Tell, arrived func(context.Context) (bool, string)) error {
	last := ""
	say := func(words string) {
		if words != last {
			tell(words)
			last = words
		}
	}
	for {
		done, words, err := o.round(ctx, name, j, arrived)
		if err != nil || done {
			return err
		}
		say(words)
		if err := o.Pause(ctx); err != nil {
			return err
		}
	}
}

// round looks once.
func (o Options) round(ctx context.Context, name string, j journal, arrived func(context.Context) (bool, string)) (done bool, words string, err error) {
	u, err := o.ask(ctx, name, j)
	if err != nil {
		return false, "", err
	}
	if u.skipped {
		return false, "", diag.WithHint(fmt.Errorf("%s was passed over on %s: a condition of it does not hold", j.unit, name),
			"is the node ready (slipway-node ready), and k3s in its image? see: systemctl status "+j.unit)
	}
	if c, found := find(u, name); found && c.final {
		return false, "", exit.With(exit.Failed, diag.WithHint(fmt.Errorf("%s: %s", c.what, c.line), c.hint))
	} else if found {
		return false, c.what, nil
	}
	if ok, words := arrived(ctx); !ok {
		return false, words, nil
	}
	if u.active != "active" {
		return false, fmt.Sprintf("%s is %s", j.unit, u.active), nil
	}
	o.Survey.Forget(name)
	if s := o.Survey.Ask(ctx, name)[0]; s.Err != nil {
		return false, first(s.Err.Error()), nil
	} else if !s.Facts.K3s.Joined {
		return false, "the cluster has not let it in as a node", nil
	}
	return true, "", nil
}

// first is the first line of a text.
func first(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
