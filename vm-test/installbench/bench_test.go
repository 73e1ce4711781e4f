package installbench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/vm-test/netns"
	"github.com/slipway/slipway/vm-test/rounds"
)

// The flags of make bench. They are read by tests only, and before any runs.
var (
	full  = flag.Bool("bench-run", false, "measure in earnest, some minutes")
	times = flag.Int("bench-rounds", 5, "how often everything is measured, in earnest")
	out   = flag.String("bench-out", "../../out", "directory for the results as JSON")
	where = flag.String("bench-disks", "/dev/shm", "directory in which the machines' disks lie; the default is memory")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(machineVariable) != "" {
		asMachine()
		return
	}
	os.Exit(netns.Main(m))
}

// How much longer an install with all checks may take than the pipe without any, and
// eight machines than one (issue 3, "Must show" 7).
const (
	overPipe   = 1.3
	overOne    = 1.2
	together   = 8
	alonePort  = 50e6 // bit/s
	sharedPort = 400e6
)

const (
	ours   = "slipway"
	theirs = "curl | zstd -d | dd"
	direct = "the same, oflag=direct"
)

func columns() []rounds.Column {
	return []rounds.Column{{Name: "seconds", Digits: 2}, {Name: "peak MiB", Digits: 0}, {Name: "CPU s", Digits: 2}}
}

// TestBenchInstall: one machine, beside the pipe.
func TestBenchInstall(t *testing.T) {
	y := newYard(t, 1)
	m := y.machines[0]
	var tables []*rounds.Table
	for _, c := range conditions() {
		y.server.Limit(t, c.bits)
		table := &rounds.Table{
			Title: "one install, " + c.name, Columns: columns(), Names: []string{ours, theirs, direct},
			Aims: []rounds.Aim{{Column: "seconds", To: theirs, Most: overPipe}, {Column: "seconds", To: direct, Most: overPipe}},
		}
		for round := range choose(*times, 1) {
			for _, name := range table.Order(round) {
				table.Add(name, m.measure(t, y, name, c)...)
			}
		}
		tables = append(tables, table)
	}
	report(t, "install", tables)
}

// condition is under what an install is measured.
type condition struct {
	name  string
	bits  int  // that the server's port carries a second; 0: as many as it can
	zeros bool // the disk must be written zeros: it has no quick way
}

func conditions() []condition {
	all := []condition{
		{"no limit on the link, a disk that makes ranges zero by itself", 0, false},
		{"no limit on the link, a disk that must be written zeros", 0, true},
		{"a link of 1 Gbit/s, a disk that makes ranges zero by itself", 1e9, false},
		{"a link of 1 Gbit/s, a disk that must be written zeros", 1e9, true},
	}
	return all[:choose(len(all), 1)]
}

// TestBenchTogether: eight machines at once, beside one.
func TestBenchTogether(t *testing.T) {
	if !*full {
		return
	}
	y := newYard(t, together)
	names := []string{fmt.Sprintf("%d at once", together), "one"}
	own := &rounds.Table{
		Title: "installs, each machine behind a port of 50 Mbit/s of its own", Columns: []rounds.Column{{Name: "seconds", Digits: 2}}, Names: names,
		Aims: []rounds.Aim{{Column: "seconds", To: "one", Most: overOne}},
	}
	shared := &rounds.Table{
		Title: "installs, all machines behind the server's port of 400 Mbit/s", Columns: []rounds.Column{{Name: "seconds", Digits: 2}, {Name: "MB/s of image", Digits: 1}}, Names: names,
		Aims: []rounds.Aim{{Column: "MB/s of image", To: "one", Least: 1 / overOne}},
	}
	for _, m := range y.machines {
		netns.Limit(t, m.cable, alonePort)
	}
	for round := range max(*times/2, 1) {
		for _, name := range own.Order(round) {
			own.Add(name, y.installAll(t, y.chosen(name == names[0])).Seconds())
		}
	}
	for _, m := range y.machines {
		netns.Limit(t, m.cable, 0)
	}
	y.server.Limit(t, sharedPort)
	for round := range max(*times/2, 1) {
		for _, name := range shared.Order(round) {
			some := y.chosen(name == names[0])
			took := y.installAll(t, some).Seconds()
			shared.Add(name, took, float64(y.imageSize*int64(len(some)))/1e6/took)
		}
	}
	report(t, "together", []*rounds.Table{own, shared})
}

func (y *yard) chosen(all bool) []*box {
	if all {
		return y.machines
	}
	return y.machines[:1]
}

// installAll installs machines at once and gives the time until the last is done.
func (y *yard) installAll(t *testing.T, some []*box) time.Duration {
	t.Helper()
	for _, m := range some {
		y.arm(t, m)
		m.blank(t)
	}
	start := time.Now()
	var running sync.WaitGroup
	for _, m := range some {
		running.Go(func() { m.run(t, m.install(y, condition{})) })
	}
	running.Wait()
	return time.Since(start)
}

// report prints the tables and, in earnest, keeps them and judges.
func report(t *testing.T, name string, tables []*rounds.Table) {
	t.Helper()
	var text strings.Builder
	for _, table := range tables {
		text.WriteString("\n")
		if err := table.Write(&text); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s\n%s", rounds.Machine(), text.String())
	if !*full {
		return
	}
	for _, table := range tables {
		for _, missed := range table.Missed() {
			t.Error(missed)
		}
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(*out, "bench-"+name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := rounds.JSON(f, tables...); err != nil {
		t.Fatal(err)
	}
}

func choose(earnest, short int) int {
	if *full {
		return earnest
	}
	return short
}
