package pxebench

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/vm-test/netns"
	"github.com/slipway/slipway/vm-test/rounds"
)

// The flags of make bench. They are read by tests only, and before any runs.
var (
	full  = flag.Bool("bench-run", false, "measure in earnest, a few minutes")
	times = flag.Int("bench-rounds", 7, "how often everything is measured, in earnest")
	out   = flag.String("bench-out", "../../out", "directory for the results as JSON")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if dir := os.Getenv(libraryVariable); dir != "" {
		serveLibrary(dir)
		return
	}
	os.Exit(netns.Main(m))
}

// report prints the tables and, in earnest, keeps them and judges.
func report(t *testing.T, name string, tables ...*rounds.Table) {
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

// choose is the first number in earnest and the second otherwise.
func choose(earnest, short int) int {
	if *full {
		return earnest
	}
	return short
}
