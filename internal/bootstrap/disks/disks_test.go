package disks

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/sequence"
)

// node is a node of the lab; what it does with disks is tested where it does it.
type node struct {
	facts   facts.Facts
	ordered []facts.Wanted
	err     error
}

func (n *node) Run(_ context.Context, command string, stdin []byte) ([]byte, error) {
	if command != "slipway-node data make -o json" {
		return nil, errors.New("it was told " + command)
	}
	var w facts.Wanted
	if err := json.Unmarshal(stdin, &w); err != nil {
		return nil, err
	}
	n.ordered = append(n.ordered, w)
	if n.err != nil {
		return nil, n.err
	}
	n.facts.Disks[1].Content = data
	for _, d := range w.Disks {
		n.facts.Data = []facts.Mount{{Name: d.Name, Serial: n.facts.Disks[1].ID(), Path: d.Path, UUID: "u", Mounted: true}}
	}
	return nil, nil
}

func (n *node) Ask(_ context.Context, names ...string) []facts.Seen {
	return []facts.Seen{{Node: names[0], Facts: n.facts}}
}

func (n *node) Forget(...string) {}

var data = []machine.Signature{{Type: "gpt"}, {Partition: 1, Type: "partition", Label: "slipway-data"}, {Partition: 1, Type: "ext4", Label: "slipway-data", UUID: "u"}}

// refusedThere is an error with the exit code of the node's program.
type refusedThere struct{}

func (refusedThere) Error() string { return "the disk holds something else" }
func (refusedThere) ExitCode() int { return 3 }

func lab(t *testing.T, content ...machine.Signature) (*node, []sequence.Step, cluster.Cluster) {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "..", "profiles", "lab.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := p.Cluster
	c.Nodes = c.Nodes[:1]
	n := &node{facts: facts.Facts{Disks: []machine.Disk{
		{Name: "vda", Serial: c.Nodes[0].System.Serial, Size: 8e9, Boot: true},
		{Name: "vdb", Serial: c.Nodes[0].Data[0].Selector.Serial, Size: 8e9, Content: content},
	}}}
	return n, Steps(c, func(string) Node { return n }, n), c
}

func run(t *testing.T, steps []sequence.Step) (int, error) {
	t.Helper()
	r := sequence.Runner{Now: time.Now, On: func(sequence.Event) {}}
	return r.Run(t.Context(), steps)
}

func TestSteps(t *testing.T) {
	for name, c := range map[string]struct {
		content []machine.Signature
		what    string
		why     string
	}{
		"blank": {nil, "file system on vdb (serial slipway-n1-data, 8.0 GB)", "it is blank; data disk data goes to /var/lib/longhorn/data"},
		"ours":  {data, "mount of vdb", "it holds data and is taken as it is"},
	} {
		n, steps, _ := lab(t, c.content...)
		changes, err := steps[0].Observe(t.Context())
		if err != nil || len(changes) != 1 || !strings.HasPrefix(changes[0].What, c.what) || !strings.HasPrefix(changes[0].Why, c.why) || len(n.ordered) > 0 {
			t.Errorf("%s: %v, %v", name, changes, err)
		}
		for try, want := range []int{1, 0} {
			if did, err := run(t, steps); did != want || err != nil {
				t.Errorf("%s, run %d: did %d, %v", name, try, did, err)
			}
		}
		if len(n.ordered) != 1 || n.ordered[0].Disks[0].Path != "/var/lib/longhorn/data" || n.ordered[0].Format != facts.DataFormat {
			t.Errorf("%s: ordered %+v", name, n.ordered)
		}
	}
}

func TestPlans(t *testing.T) {
	kept := facts.Mount{Name: "data", Serial: "slipway-n1-data", Path: "/var/lib/longhorn/data", Mounted: true}
	for name, c := range map[string]struct {
		kept []facts.Mount
		want string
	}{
		"mounted":      {[]facts.Mount{kept}, ""},
		"not mounted":  {[]facts.Mount{{Name: "data", Serial: kept.Serial, Path: kept.Path}}, "it is not mounted at /var/lib/longhorn/data"},
		"another disk": {[]facts.Mount{{Name: "data", Serial: "OLD", Path: kept.Path, Mounted: true}}, "data disk data was OLD"},
		"another path": {[]facts.Mount{{Name: "data", Serial: kept.Serial, Path: "/mnt", Mounted: true}}, "at /mnt"},
		"one no more":  {[]facts.Mount{kept, {Name: "old", Serial: "OLD", Path: "/x", Mounted: true}}, "the profile names it no more"},
	} {
		n, steps, _ := lab(t, data...)
		n.facts.Data = c.kept
		changes, err := steps[0].Observe(t.Context())
		if err != nil || (c.want == "") != (len(changes) == 0) || c.want != "" && !strings.Contains(changes[0].Why, c.want) {
			t.Errorf("%s: %v, %v", name, changes, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	n, steps, _ := lab(t, machine.Signature{Type: "ntfs"})
	if _, err := run(t, steps); exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "not Slipway's: ntfs") || diag.HintOf(err) == "" || len(n.ordered) > 0 {
		t.Errorf("%v", err)
	}
	n, steps, _ = lab(t)
	n.err = refusedThere{}
	if _, err := run(t, steps); exit.Of(err) != exit.Refused {
		t.Errorf("what the node refused: %v, exit code %d", err, exit.Of(err))
	}
	_, _, c := lab(t)
	c.Longhorn.Enabled = false
	if steps := Steps(c, nil, nil); len(steps) != 0 {
		t.Error("without Longhorn nobody needs the disks")
	}
}
