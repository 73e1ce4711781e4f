package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEntryOf(t *testing.T) {
	tests := []struct {
		files []string
		slot  string
		want  string
	}{
		{[]string{"slot-a.conf", "slot-b+3.conf"}, "b", "slot-b.conf"},
		{[]string{"slot-a+2-1.conf"}, "a", "slot-a.conf"},
		{[]string{"slot-a.conf"}, "b", ""},
		{[]string{"slot-b+0-3.conf"}, "b", ""}, // has failed three times
		{[]string{"slot-b+10.conf"}, "b", "slot-b.conf"},
		{[]string{"notslot-b.conf", "slot-b.conf.bak", "slot-b.txt"}, "b", ""},
		{nil, "a", ""},
	}
	for _, tt := range tests {
		got, ok := entryOf(tt.files, tt.slot)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%v: entry of %s is %q (%v), want %q", tt.files, tt.slot, got, ok, tt.want)
		}
	}
}

// TestSteps: the order that the comments in steps give reasons for.
func TestSteps(t *testing.T) {
	var names []string
	for _, s := range steps() {
		if s.doing == "" || s.do == nil {
			t.Errorf("step %s is not complete", s.name)
		}
		names = append(names, s.name)
	}
	for _, pair := range [][2]string{
		{"mounts", "command line"}, {"modules", "disk"}, {"disk", "partitions"}, {"partitions", "verify"},
		{"verify", "slot"}, {"slot", "state"}, {"state", "identity"}, {"identity", "root"}, {"whole slot", "root"}, {"root", "seed"}, {"root", "units"},
	} {
		if before, after := slices.Index(names, pair[0]), slices.Index(names, pair[1]); before < 0 || after < before {
			t.Errorf("%s must come before %s in %v", pair[0], pair[1], names)
		}
	}
}

func TestCopySeed(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "seed")
	for _, name := range []string{"meta-data", "user-data", "stranger"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := copySeed(from, to); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(to)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
	if st, err := os.Stat(filepath.Join(to, "user-data")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if err := os.Truncate(filepath.Join(from, "user-data"), seedLimit+1); err != nil {
		t.Fatal(err)
	}
	if err := copySeed(from, to); err == nil || !strings.Contains(err.Error(), "user-data is larger") {
		t.Errorf("a huge document: %v", err)
	}
}

// TestUnitTexts: a setting or a section a line, nothing else.
func TestUnitTexts(t *testing.T) {
	for _, text := range []string{espMount, espAutomount, keepMounted} {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "[") && !strings.Contains(line, "=") {
				t.Errorf("line %q is neither a section nor a setting", line)
			}
		}
	}
}
