package fluxsync_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/fluxsync"
	"github.com/slipway/slipway/internal/payload/yamlform"
	"github.com/slipway/slipway/internal/profilefile"
)

var update = flag.Bool("update", false, "write what the tests see to their golden files")

func load(t *testing.T, name string) cluster.Cluster {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "..", "profiles", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Cluster
}

func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := yamlform.Marshal("", v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestObjects(t *testing.T) {
	c := load(t, "dev")
	golden(t, "before.yaml", fluxsync.Objects(c, fluxsync.Options{Suspend: true}))
	golden(t, "after.yaml", fluxsync.Objects(c, fluxsync.Options{}))
	c.Flux.URL, c.Flux.Path = "https://git.example.org/harbor/fleet", "./clusters/dev"
	golden(t, "public.yaml", fluxsync.Objects(c, fluxsync.Options{}))
	golden(t, "token.yaml", fluxsync.Objects(c, fluxsync.Options{Private: true}))
	if got := fluxsync.Objects(load(t, "lab"), fluxsync.Options{}); got != nil {
		t.Errorf("without a repository: %v", got)
	}
}

func TestSecret(t *testing.T) {
	golden(t, "secret.yaml", fluxsync.Secret(fluxsync.AgeSecret, map[string][]byte{fluxsync.AgeKey: []byte("AGE-SECRET-KEY-FIXTURE\n"), "empty": nil}))
}

func TestMissingKeys(t *testing.T) {
	ssh := load(t, "dev")
	https, none := ssh, ssh
	https.Flux.URL, none.Flux.URL = "https://git.example.org/x", ""
	full := map[string][]byte{"identity": {1}, "known_hosts": {1}, "username": {1}, "password": {1}}
	for _, tt := range []struct {
		c      cluster.Cluster
		o      fluxsync.Options
		values map[string][]byte
		want   []string
	}{
		{ssh, fluxsync.Options{}, nil, []string{"identity", "known_hosts"}},
		{ssh, fluxsync.Options{}, full, nil},
		{https, fluxsync.Options{}, nil, nil},
		{https, fluxsync.Options{Private: true}, nil, []string{"username", "password"}},
		{https, fluxsync.Options{Private: true}, map[string][]byte{"bearerToken": {1}}, nil},
		{none, fluxsync.Options{Private: true}, nil, nil},
	} {
		if got := fluxsync.MissingKeys(tt.c, tt.o, tt.values); !slices.Equal(got, tt.want) {
			t.Errorf("%s, %+v: missing %v, want %v", tt.c.Flux.URL, tt.o, got, tt.want)
		}
	}
}
