package imagebuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/exit"
)

func TestCheckOutRefusesWhatNoBuildMade(t *testing.T) {
	cases := map[string]struct {
		files []string
		want  string // part of the refusal; "" means that the directory may be taken
	}{
		"absent":        {nil, ""},
		"foreign":       {[]string{"thesis.txt"}, "thesis.txt"},
		"other's index": {[]string{"index.json", "website/thesis.txt"}, "index.json"},
	}
	for name, c := range cases {
		out := filepath.Join(t.TempDir(), "out")
		for _, f := range c.files {
			p := filepath.Join(out, f)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := (&builder{Options: Options{Out: out}}).checkOut()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, exit code %d", name, err, exit.Of(err))
		}
	}
}
