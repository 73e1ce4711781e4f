package configfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// write makes a configuration: by name of the file, "" being config.yaml.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	base := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.MkdirAll(base+".d", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := base
		if name != "" {
			path = filepath.Join(base+".d", name)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func TestFlags(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"nothing": {},
		"kinds of values": {
			files: map[string]string{"": "token: abc\ncluster-init: true\nhttps-listen-port: 6443\nt: short\nempty:\n"},
			want:  []string{"--token=abc", "--cluster-init=true", "--https-listen-port=6443", "-t=short", "--empty="},
		},
		"only drop-ins, in alphabetical order": {
			files: map[string]string{"b.yaml": "token: b\n", "a.yml": "token: a\nnode-name: n1\n", "c.txt": "token: c\n"},
			want:  []string{"--token=b", "--node-name=n1"},
		},
		"YAML 1.1, where n means false": {
			files: map[string]string{"": "node-name: n\n"},
			want:  []string{"--node-name=false"},
		},
		"a later list replaces an earlier one": {
			files: map[string]string{"": "disable: [traefik, servicelb]\n", "90-x.yaml": "disable: [metrics-server]\n"},
			want:  []string{"--disable=metrics-server"},
		},
		"plus appends": {
			files: map[string]string{"": "tls-san: [a]\n", "1.yaml": "tls-san+: [b]\n", "2.yaml": "tls-san+: c\n"},
			want:  []string{"--tls-san=a", "--tls-san=b", "--tls-san=c"},
		},
		"plus makes a list of a scalar": {
			files: map[string]string{"": "node-label: a=1\n", "1.yaml": "node-label+: [b=2]\n"},
			want:  []string{"--node-label=a=1", "--node-label=b=2"},
		},
		"without plus later, what was added is lost": {
			files: map[string]string{"": "tls-san: [a]\n", "1.yaml": "tls-san+: [b]\n", "2.yaml": "tls-san: [c]\n"},
			want:  []string{"--tls-san=c"},
		},
		"plus on a key that nobody has set": {
			files: map[string]string{"1.yaml": "tls-san+: [b]\n"},
			want:  []string{"--tls-san=b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Flags(write(t, c.files))
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestFlagsOfBrokenFile(t *testing.T) {
	if got, err := Flags(write(t, map[string]string{"": "a: [\n"})); err == nil {
		t.Errorf("a broken file was read as %q", got)
	}
}
