package profilefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/profile"
)

const profiles = "../../profiles/"

// TestProfiles loads every profile of the repository.
func TestProfiles(t *testing.T) {
	paths, err := filepath.Glob(profiles + "*.yaml")
	if err != nil || len(paths) < 4 {
		t.Fatalf("only %v, %v", paths, err)
	}
	for _, path := range paths {
		p, err := Check(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if want := strings.TrimSuffix(filepath.Base(path), ".yaml"); !p.Base && p.Cluster.Environment != want {
			t.Errorf("%s is called %s", path, p.Cluster.Environment)
		}
	}
}

// TestLab pins what the tests of other packages and the lab itself rely on.
func TestLab(t *testing.T) {
	p, err := Load(profiles + "lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := p.Cluster
	if c.Substrate != cluster.SubstrateVM || c.Status != cluster.StatusActive || len(c.Nodes) != 3 || !c.System.RescueShell {
		t.Errorf("%+v", c)
	}
	n := c.Nodes[0]
	if n.Name != "n1" || n.Interfaces[0].MAC != "52:54:00:12:34:56" || n.Interfaces[0].Addresses[0].String() != "10.0.2.15/24" || n.System.Serial != "slipway-n1-system" {
		t.Errorf("%+v", n)
	}
	if pos, ok := p.Origin("nodes[0].interfaces[0].mac"); !ok || pos.File != profiles+"lab.yaml" {
		t.Errorf("the MAC is from %s", pos)
	}
	if last := c.System.ExtraConsole[len(c.System.ExtraConsole)-1]; last != "ttyS0,115200" {
		t.Errorf("/dev/console is %s", last)
	}
}

// TestProdIsDesignOnly: changing this is an act of its own, in git.
func TestProdIsDesignOnly(t *testing.T) {
	p, err := Load(profiles + "prod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p.Cluster.Status != cluster.StatusDesignOnly || p.Cluster.Substrate != cluster.SubstrateMetal || p.Cluster.System.RescueShell {
		t.Errorf("%s, %s", p.Cluster.Status, p.Cluster.Substrate)
	}
}

// TestLabKeyOnMetal lays the lab's overlay on metal.
func TestLabKeyOnMetal(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"base.yaml", "lab.yaml"} {
		text, err := os.ReadFile(profiles + name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, strings.Replace(string(text), "substrate: vm", "substrate: metal", 1))
	}
	var list *diag.Error
	if _, err := Load(filepath.Join(dir, "lab.yaml")); !errors.As(err, &list) || len(list.Findings) != 1 || !strings.Contains(err.Error(), "published") {
		t.Error(err)
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestErrors reads what cannot be read: one error, a hint, the exit code of a
// bad profile.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ path, want, hint string }{
		"no file":    {filepath.Join(dir, "none.yaml"), "there is no file", "profiles/lab.yaml"},
		"directory":  {dir, "is not a file", "profiles/lab.yaml"},
		"device":     {"/dev/zero", "is not a file", ""},
		"no base":    {write(t, dir, "orphan.yaml", "version: 1\nextends: nobase.yaml\n"), "nobase.yaml", "extends it"},
		"a base":     {profiles + "base.yaml", "is a base, not an environment", "lab.yaml"},
		"too large":  {write(t, dir, "large.yaml", strings.Repeat("#", profile.MaxSize+5)), "bytes", ""},
		"not a text": {write(t, dir, "text.yaml", "a: \x00"), "NUL", ""},
		"two levels": {write(t, dir, "second.yaml", "version: 1\nextends: orphan.yaml\n"), "a base that extends another file", ""},
		"itself":     {write(t, dir, "self.yaml", "version: 1\nextends: self.yaml\n"), "a base that extends another file", ""},
	} {
		_, err := Load(c.path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(diag.HintOf(err), c.hint) {
			t.Errorf("%s: %v (hint %q)", name, err, diag.HintOf(err))
		}
		if got := exit.Of(err); got != exit.Usage {
			t.Errorf("%s: exit code %d", name, got)
		}
	}
}
