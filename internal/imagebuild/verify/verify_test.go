package verify

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/imagebuild/verify/buildtest"
)

// original is the build that the tests copy: it is made once.
var original string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "verify-*")
	if err == nil {
		original = filepath.Join(dir, "build")
		err = buildtest.Build(ctx(), original, buildtest.Default())
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// copyOf is a copy of the build that a test may spoil.
func copyOf(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "build")
	if err := buildtest.Copy(t.Context(), original, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func verify(t *testing.T, dir string) Report {
	t.Helper()
	r, err := Verify(t.Context(), Options{Dir: dir, TrustedKey: buildtest.PublicKey()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// flip changes one byte of a file, also one in a hole.
func flip(t *testing.T, dir, name string, at int64) {
	t.Helper()
	if err := buildtest.Flip(dir, name, at); err != nil {
		t.Fatal(err)
	}
}

// index changes the index and signs it again, as a builder with a bug would.
func index(t *testing.T, dir string, change func(*artifact.Index)) {
	t.Helper()
	x, err := buildtest.Index(dir)
	if err != nil {
		t.Fatal(err)
	}
	change(&x)
	if err := buildtest.Sign(dir, x); err != nil {
		t.Fatal(err)
	}
}

func text(r Report) string {
	var b strings.Builder
	for _, p := range r.Problems {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

func TestGoodBuildHasNoProblems(t *testing.T) {
	r := verify(t, original)
	if !r.OK() {
		t.Errorf("found\n%s", text(r))
	}
	if r.Files != 16 || r.Packages != 1 || r.Signer != artifact.Fingerprint(buildtest.PublicKey()) {
		t.Errorf("report %+v", r)
	}
}

func TestGoodBuildWithoutRawImageAndSlotFile(t *testing.T) {
	dir := copyOf(t)
	index(t, dir, func(x *artifact.Index) {
		kept := x.Files[:0]
		for _, f := range x.Files {
			if f.Role == artifact.RoleDiskRaw || f.Role == artifact.RoleSlot {
				if err := os.Remove(filepath.Join(dir, f.Name)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			kept = append(kept, f)
		}
		x.Files = kept
	})
	// The provenance names files that are gone: that, and nothing else.
	if got := text(verify(t, dir)); got != "provenance.json: subject 1 is disk.raw, want disk.raw.zst\n" {
		t.Errorf("found\n%s", got)
	}
}

func TestFlippedByteIsFoundInEveryFile(t *testing.T) {
	dir := copyOf(t)
	x, err := buildtest.Index(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{artifact.IndexName, artifact.SignatureName}
	for _, f := range x.Files {
		names = append(names, f.Name)
	}
	for _, name := range names {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int64{0, st.Size() / 3, st.Size() / 2, st.Size() - 1} {
			flip(t, dir, name, at)
			if r := verify(t, dir); r.OK() || !strings.Contains(text(r), name) && name != artifact.IndexName {
				t.Errorf("%s, byte %d: found %q", name, at, text(r))
			}
			flip(t, dir, name, at)
		}
	}
	if r := verify(t, dir); !r.OK() {
		t.Errorf("after flipping everything back:\n%s", text(r))
	}
}

func TestPlaceInTheRawImageIsNamed(t *testing.T) {
	for at, want := range map[int64]string{
		0:                 "disk.raw: byte 0 (protective MBR, chunk 0) is 0x01, want 0x00; 1 bytes of the chunk differ\n",
		700:               "disk.raw: byte 700 (primary GPT, chunk 0)",
		200 << 20:         "disk.raw: byte 209715200 (partition 1 (slipway-esp), byte 207618048, chunk 50) is 0x01, want 0x00",
		262<<20 + 5000:    "(partition 2 (slipway-a), byte 5000, chunk 65)",
		262<<20 + 60<<20:  "(partition 2 (slipway-a), byte 62914560, chunk 80) is 0x01, want 0x00",
		262<<20 + 100<<20: "(partition 3 (slipway-b), byte",
		428867584 - 1:     "(backup GPT, chunk 102)",
		428867584 - 90000: "(unpartitioned space, chunk 102)",
	} {
		dir := copyOf(t)
		flip(t, dir, "disk.raw", at)
		if got := text(verify(t, dir)); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("byte %d: found\n%swant\n%s", at, got, want)
		}
	}
}

func TestProblemsAreNamed(t *testing.T) {
	write := func(dir, name, data string) error { return os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644) }
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"missing":   {func(d string) error { return os.Remove(d + "/initrd.zst") }, "initrd.zst: is missing\n"},
		"extra":     {func(d string) error { return write(d, "seeds/n1/evil", "x") }, "seeds/n1/evil: is not part of the build\n"},
		"extra dir": {func(d string) error { return os.MkdirAll(d+"/more/x", 0o755) }, "more: directory is not part of the build\n"},
		"shorter":   {func(d string) error { return os.Truncate(d+"/disk.raw", 100<<20) }, "disk.raw: has 104857600 bytes, want 428867584\n"},
		"short zst": {func(d string) error { return os.Truncate(d+"/disk.raw.zst", 1000) }, "disk.raw.zst: chunk 0 (byte 0 of the file): unexpected EOF\n"},
		"longer":    {func(d string) error { return os.Truncate(d+"/disk.raw.zst", 100<<20) }, "disk.raw.zst: has 104857600 bytes, want"},
		"symlink": {func(d string) error {
			return errors.Join(os.Rename(d+"/vmlinuz", d+"/../k"), os.Symlink("../k", d+"/vmlinuz"))
		}, "vmlinuz: is not a regular file\n"},
		"no index":     {func(d string) error { return os.Remove(d + "/index.json") }, "index.json: is missing\n"},
		"no signature": {func(d string) error { return os.Remove(d + "/index.json.sig") }, "index.json.sig: is missing\n"},
		"bad index":    {func(d string) error { return write(d, "index.json", "{}\n") }, `index.json: index format is ""`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t)
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			if got := text(verify(t, dir)); !strings.Contains(got, c.want) {
				t.Errorf("found\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestOtherKeyIsNotTrusted(t *testing.T) {
	pub, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), Options{Dir: original, TrustedKey: pub})
	if err != nil || r.Signer != "" || !strings.Contains(text(r), "index.json.sig: signed by another key: SHA256:") {
		t.Errorf("%v, %q", err, text(r))
	}
}
