package material

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/profilefile"
)

// ciliumChart packs the real chart, which lies in the module of Cilium's client.
func ciliumChart(t *testing.T) []byte {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cilium/cilium").Output()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	root := os.DirFS(filepath.Join(strings.TrimSpace(string(dir)), "install/kubernetes"))
	err = fs.WalkDir(root, "cilium", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// settings are those of a profile in a directory of the test, with secrets for two.
func settings(t *testing.T, profile string) Settings {
	t.Helper()
	p, err := profilefile.Load("../../../profiles/" + profile + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := Settings{
		Cluster: p.Cluster, Profile: filepath.Join(dir, profile+".yaml"), State: filepath.Join(dir, "state"),
		AgeKey: filepath.Join(dir, "age.txt"), Home: dir, Getenv: func(string) string { return "" }, Now: time.Now,
	}
	if s.Cluster.Flux.Path == "" {
		s.Cluster.Flux.URL, s.Cluster.Flux.Path = "https://git.example.test/fleet", "clusters/"+profile
	}
	var recipients []string
	for _, path := range []string{s.AgeKey, filepath.Join(dir, "recovery.txt")} {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(key.String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		recipients = append(recipients, key.Recipient().String())
	}
	if _, err := InitSecrets(s, recipients); err != nil {
		t.Fatal(err)
	}
	return s
}

// The first commit is in parity with the profile, with the real chart; the second
// environment is too; and what an author changes in it is found.
func TestGitOpsInit(t *testing.T) {
	p := &Payload{Cilium: ciliumChart(t)}
	dir := t.TempDir()
	lab := settings(t, "lab")
	got, err := GitOpsInit(t.Context(), lab, p, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Written) < 20 || len(got.Sealed) != 1 {
		t.Errorf("%d files written, sealed %q", len(got.Written), got.Sealed)
	}
	if text := read(t, filepath.Join(dir, got.Sealed[0])); strings.Contains(text, "change me") {
		t.Errorf("a secret lies open:\n%s", text)
	}
	again, err := GitOpsInit(t.Context(), lab, p, dir)
	if err != nil || len(again.Written) != 0 || again.Kept != len(got.Written) {
		t.Errorf("the second time %+v, %v", again, err)
	}
	lab.Repo = dir
	if err := parityOf(t, lab, p); err != nil {
		t.Errorf("what was read back: %v", err)
	}
	for _, c := range []struct{ file, old, new, want string }{
		{"infrastructure/base/cilium.yaml", "kubeProxyReplacement: true", "kubeProxyReplacement: false", "infrastructure/base/cilium.yaml:"},
		{"infrastructure/base/cilium.yaml", "storageNamespace: kube-system", "storageNamespace: flux-system", "storageNamespace is"},
		{"charts/cilium/Chart.yaml", "version: 1.20.2", "version: 1.20.3", "is not the one that was installed"},
	} {
		path := filepath.Join(dir, c.file)
		before := read(t, path)
		if !strings.Contains(before, c.old) {
			t.Fatalf("%s has no %q", c.file, c.old)
		}
		write(t, path, strings.Replace(before, c.old, c.new, 1))
		if err := parityOf(t, lab, p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %q: %v, want %q", c.file, c.new, err, c.want)
		}
		write(t, path, before)
	}
}

// An environment that joins the repository of another keeps its base.
func TestGitOpsInitSecondEnvironment(t *testing.T) {
	p := &Payload{Cilium: ciliumChart(t)}
	dir := t.TempDir()
	dev := settings(t, "dev")
	if _, err := GitOpsInit(t.Context(), dev, p, dir); err != nil {
		t.Fatal(err)
	}
	prod := settings(t, "prod")
	prod.Cluster.Nodes = prod.Cluster.Nodes[:1]
	prod.Cluster.Status = cluster.StatusActive
	if _, err := GitOpsInit(t.Context(), prod, p, dir); err != nil {
		t.Fatal(err)
	}
	for _, s := range []Settings{dev, prod} {
		s.Repo = dir
		if err := parityOf(t, s, p); err != nil {
			t.Errorf("%s: %v", s.Cluster.Environment, err)
		}
	}
}

func parityOf(t *testing.T, s Settings, p *Payload) error {
	t.Helper()
	start := time.Now()
	ids, err := s.identities()
	if err != nil {
		t.Fatal(err)
	}
	r := &Reader{settings: s, ids: ids}
	got, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Judge(s.Cluster, got.Tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s judged in %s", s.Cluster.Environment, time.Since(start).Round(time.Millisecond))
	return v.Err()
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
