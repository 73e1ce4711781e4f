package pin_test

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/pin"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs, got:\n%s\nwant:\n%s", name, got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	data := sample().Marshal()
	golden(t, "testdata/sample.lock", string(data))
	back, err := pin.Parse("sample.lock", data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, sample()) {
		t.Errorf("read back:\n%+v\nwritten:\n%+v", back, sample())
	}
}

// A foreign reader sees the same texts: nothing turns into a number or a date.
func TestForeignReader(t *testing.T) {
	var doc map[string]any
	if err := yaml.Unmarshal(sample().Marshal(), &doc); err != nil {
		t.Fatal(err)
	}
	tool := doc["artifacts"].([]any)[3].(map[string]any)
	if v, ok := tool["version"].(string); !ok || v != "1" {
		t.Errorf("version 1 is read as %T %v", tool["version"], tool["version"])
	}
}

// The locks of the repository are exactly what this package would write.
func TestLocksOfTheRepository(t *testing.T) {
	files, err := filepath.Glob("../../profiles/*.lock")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lock, err := pin.Parse(name, data)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if string(lock.Marshal()) != string(data) {
			t.Errorf("%s was changed by hand, or by another version", name)
		}
		for _, set := range []string{pin.SetRootfs, pin.SetKernel, pin.SetNetboot} {
			if s := lock.Set(set); s == nil || len(s.Packages) == 0 {
				t.Errorf("%s has no set %s", name, set)
			}
		}
		if n := len(lock.Set(pin.SetKernel).Packages); n != 1 {
			t.Errorf("%s has %d kernels", name, n)
		}
	}
}

func TestBadLocks(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.lock")
	if err != nil || len(files) < 8 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lock, err := pin.Parse(filepath.Base(name), data)
			if err == nil {
				t.Fatalf("read as %+v", lock)
			}
			golden(t, strings.TrimSuffix(name, ".lock")+".want", err.Error()+"\n")
		})
	}
}

func TestEpochIsTheNewestRelease(t *testing.T) {
	if got, want := sample().Epoch(), time.Date(2026, 2, 2, 3, 4, 5, 0, time.UTC); !got.Equal(want) {
		t.Errorf("epoch %v, want %v", got, want)
	}
}

func TestPath(t *testing.T) {
	if got := pin.Path("profiles/lab.yaml"); got != "profiles/lab.lock" {
		t.Errorf("got %s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample().Marshal())
	f.Add([]byte("version: 1\ndebian: &a {suite: *a}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lock, err := pin.Parse("x.lock", data)
		if err != nil {
			return
		}
		again, err := pin.Parse("x.lock", lock.Marshal())
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if string(again.Marshal()) != string(lock.Marshal()) {
			t.Error("a second round trip differs")
		}
	})
}
