package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/object"
)

// archive is a chart as a plain tar.
func archive(t *testing.T, change map[string]string) []byte {
	t.Helper()
	files := map[string]string{
		"ship/Chart.yaml":  "apiVersion: v2\nname: ship\nversion: 1.2.3\nkubeVersion: \">= 1.30.0-0\"\n",
		"ship/values.yaml": "masts: 1\nflags: {}\n",
		"ship/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata:\n  masts: {{ .Values.masts | quote }}\n" +
			"  seen: {{ (lookup \"v1\" \"Secret\" \"a\" \"b\") | toJson | quote }}\n  dock: {{ .Capabilities.APIVersions.Has \"docks.example/v1/Dock\" | quote }}\n",
		"ship/templates/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: harbor}\n",
		"ship/templates/hook.yaml":      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: hook, annotations: {\"helm.sh/hook\": post-install}}\n",
		"ship/templates/NOTES.txt":      "ahoy",
		"ship/crds/dock.yaml":           "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: docks.docks.example}\n",
	}
	maps.Copy(files, change)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zip(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func ship(t *testing.T, change map[string]string) Release {
	return Release{Name: "ship", Namespace: "sea", Archive: archive(t, change), Values: map[string]any{"masts": 3}}
}

func TestRender(t *testing.T) {
	r := ship(t, nil)
	caps := Caps{Kubernetes: "v1.34.4+k3s1", Kinds: []string{"docks.example/v1/Dock"}}
	plain, err := Render(r, caps)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range plain {
		names = append(names, object.Of(o).Kind)
	}
	if want := []string{"CustomResourceDefinition", "Namespace", "ConfigMap", "Job"}; !slices.Equal(names, want) {
		t.Errorf("kinds %q, want %q", names, want)
	}
	config := plain[2]
	if object.Text(config, "data", "masts") != "3" || object.Text(config, "data", "seen") != "{}" || object.Text(config, "data", "dock") != "true" {
		t.Errorf("rendered %v", config["data"])
	}
	r.Archive = zip(t, r.Archive)
	zipped, err := Render(r, caps)
	if err != nil || len(zipped) != len(plain) {
		t.Errorf("the packed archive gives %d objects, %v", len(zipped), err)
	}
}

func TestRenderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Release)
		caps   Caps
		want   string
	}{
		"an old Kubernetes": {func(*Release) {}, Caps{Kubernetes: "v1.29.0"}, "it wants Kubernetes >= 1.30.0-0, not v1.29.0"},
		"no version":        {func(*Release) {}, Caps{Kubernetes: "new"}, "version of Kubernetes"},
		"no archive":        {func(r *Release) { r.Archive = []byte("no tar at all") }, Caps{Kubernetes: "v1.34.4"}, "chart of release sea/ship"},
		"a template's fault": {func(r *Release) {
			r.Archive = archive(t, map[string]string{"ship/templates/a.yaml": "{{ fail \"no wind\" }}"})
		}, Caps{Kubernetes: "v1.34.4"}, "no wind"},
		"a schema's fault": {func(r *Release) {
			r.Archive = archive(t, map[string]string{"ship/values.schema.json": `{"properties":{"masts":{"maximum":2}}}`})
		}, Caps{Kubernetes: "v1.34.4"}, "masts"},
		"what is not with it": {func(r *Release) {
			r.Archive = archive(t, map[string]string{"ship/Chart.yaml": "apiVersion: v2\nname: ship\nversion: 1.2.3\ndependencies: [{name: crew, version: 1.0.0, repository: \"https://example.org\"}]\n"})
		}, Caps{Kubernetes: "v1.34.4"}, "it needs chart crew, which is not in its archive"},
	} {
		r := ship(t, nil)
		c.change(&r)
		if _, err := Render(r, c.caps); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestDigest(t *testing.T) {
	r := ship(t, nil)
	r.Digest = digest.Of(r.Archive)
	if _, err := wish(r); err != nil {
		t.Errorf("the right digest: %v", err)
	}
	r.Archive = append(slices.Clone(r.Archive), 0)
	if _, err := wish(r); !errors.Is(err, digest.ErrMismatch) {
		t.Errorf("another archive: %v", err)
	}
}

func TestDecide(t *testing.T) {
	w, err := wish(ship(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	other, err := wish(ship(t, map[string]string{"ship/templates/more.yaml": "# more"}))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	good := Installed{Found: true, Revision: 4, Status: "deployed", Changed: at, Chart: "ship-1.2.3", Values: map[string]any{"masts": 3.0}, content: w.content}
	with := func(change func(*Installed)) Installed {
		is := good
		change(&is)
		return is
	}
	for name, c := range map[string]struct {
		is   Installed
		want string
	}{
		"as wanted":     {good, ""},
		"nothing":       {Installed{}, "is not installed"},
		"uninstalled":   {with(func(i *Installed) { i.Status = "uninstalled" }), "is not installed"},
		"killed":        {with(func(i *Installed) { i.Status = "pending-upgrade" }), "revision 4 is pending-upgrade since 2026-01-02 03:04:05Z; whoever did it was stopped"},
		"rolled back":   {with(func(i *Installed) { i.Status = "pending-rollback" }), "revision 4 is pending-rollback"},
		"failed":        {with(func(i *Installed) { i.Status, i.Description = "failed", "no wind" }), "revision 4 is failed: no wind"},
		"other chart":   {with(func(i *Installed) { i.Chart = "ship-1.0.0" }), "has chart ship-1.0.0"},
		"other content": {with(func(i *Installed) { i.content = other.content }), "has another chart of the same version"},
		"other values":  {with(func(i *Installed) { i.Values = map[string]any{"masts": 2.0, "flags": true} }), "other values: flags, masts"},
	} {
		changes := decide(w, c.is)
		switch {
		case c.want == "" && len(changes) > 0:
			t.Errorf("%s: %+v", name, changes)
		case c.want != "" && (len(changes) != 1 || !strings.Contains(changes[0].Why, c.want)):
			t.Errorf("%s: %+v, want %q", name, changes, c.want)
		}
	}
	err = refuse(ship(t, nil), with(func(i *Installed) { i.Status = "uninstalling" }))
	if exit.Of(err) != exit.Refused || diag.HintOf(err) == "" {
		t.Errorf("being uninstalled: %v", err)
	}
}

func TestRestore(t *testing.T) {
	var gone []object.Ref
	for _, name := range []string{"d", "c", "b", "a"} {
		gone = append(gone, object.Ref{Kind: "ConfigMap", Namespace: "sea", Name: name})
	}
	changes := restore(wanted{what: "it"}, gone)
	if want := "of its objects these are gone: ConfigMap sea/a, ConfigMap sea/b, ConfigMap sea/c and 1 more"; len(changes) != 1 || changes[0].Why != want {
		t.Errorf("%+v, want %q", changes, want)
	}
	if changes := restore(wanted{}, nil); changes != nil {
		t.Errorf("nothing gone: %+v", changes)
	}
}
