package cas_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
)

func open(t *testing.T) *cas.Cache {
	t.Helper()
	c, err := cas.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func hinted(err error) bool { return diag.HintOf(err) != "" }

// leftovers lists what is in the directories for unfinished work.
func leftovers(t *testing.T, c *cas.Cache) (out []string) {
	t.Helper()
	for _, sub := range []string{"tmp", "partial"} {
		entries, err := os.ReadDir(filepath.Join(c.Dir(), sub))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, sub+"/"+e.Name())
		}
	}
	return out
}

func TestPut(t *testing.T) {
	c, b := open(t), blob(1, 100_000)
	d := digest.Of(b)
	if c.Has(d) {
		t.Fatal("has what nobody put")
	}
	if err := c.Put(t.Context(), d, int64(len(b)), bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(c.Path(d))
	if err != nil || !bytes.Equal(got, b) {
		t.Fatalf("read back %d bytes, %v", len(got), err)
	}
	if st, _ := os.Stat(c.Path(d)); st.Mode().Perm() != 0o444 {
		t.Errorf("mode %v", st.Mode())
	}
	if l := leftovers(t, c); len(l) > 0 {
		t.Errorf("left %v", l)
	}
}

func TestPutRefusesWhatIsNotIt(t *testing.T) {
	b := blob(1, 1000)
	flipped := bytes.Clone(b)
	flipped[500] ^= 1
	for name, bad := range map[string][]byte{"flipped": flipped, "short": b[:999], "long": append(bytes.Clone(b), 0), "empty": nil} {
		t.Run(name, func(t *testing.T) {
			c := open(t)
			err := c.Put(t.Context(), digest.Of(b), 1000, bytes.NewReader(bad))
			if !errors.Is(err, digest.ErrMismatch) {
				t.Errorf("got %v", err)
			}
			if c.Has(digest.Of(b)) || c.Has(digest.Of(bad)) || len(leftovers(t, c)) > 0 {
				t.Errorf("something was kept: %v", leftovers(t, c))
			}
		})
	}
}

func TestPutStopsWithItsContext(t *testing.T) {
	c := open(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if err := c.Put(ctx, digest.Of(nil), -1, endless{}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A source that never ends must not fill the disk.
func TestPutReadsNoMoreThanItShould(t *testing.T) {
	if err := open(t).Put(t.Context(), digest.Of(nil), 10, endless{}); !errors.Is(err, digest.ErrMismatch) {
		t.Errorf("got %v", err)
	}
}

func TestZeroDigest(t *testing.T) {
	c := open(t)
	if c.Has(digest.Digest{}) {
		t.Error("has the unknown")
	}
	if _, ok := c.Stage("s", digest.Digest{}); ok {
		t.Error("has a stage without a key")
	}
	if _, err := c.BuildStage(t.Context(), "s", digest.Digest{}, func(string) error { return nil }); err == nil {
		t.Error("built a stage without a key")
	}
}

func TestVerifyFindsAndRemovesDamage(t *testing.T) {
	c := open(t)
	good, bad := blob(1, 5000), blob(2, 5000)
	for _, b := range [][]byte{good, bad} {
		if _, _, err := c.Add(t.Context(), bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
	}
	name := c.Path(digest.Of(bad))
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(bad)
	damaged[4999] ^= 0x80
	if err := os.WriteFile(name, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	n, err := c.VerifyAll(t.Context())
	if n != 2 || !errors.Is(err, digest.ErrMismatch) || !strings.Contains(err.Error(), name) {
		t.Errorf("verified %d: %v", n, err)
	}
	if !c.Has(digest.Of(good)) || c.Has(digest.Of(bad)) {
		t.Error("removed the wrong one")
	}
	if n, err := c.VerifyAll(t.Context()); n != 1 || err != nil {
		t.Errorf("second time: verified %d: %v", n, err)
	}
}

func TestOpenOfMissingSaysWhatToDo(t *testing.T) {
	_, err := open(t).Open(digest.Of([]byte("x")))
	if !errors.Is(err, os.ErrNotExist) || !hinted(err) {
		t.Errorf("got %v", err)
	}
}

func TestDefaultDir(t *testing.T) {
	for _, c := range []struct{ cache, xdg, home, want string }{
		{"/c", "/x", "/h", "/c"},
		{"", "/x", "/h", "/x/slipway"},
		{"", "relative", "/h", "/h/.cache/slipway"},
		{"", "", "/h", "/h/.cache/slipway"},
		{"", "", "", ""},
	} {
		env := map[string]string{"SLIPWAY_CACHE": c.cache, "XDG_CACHE_HOME": c.xdg, "HOME": c.home}
		got, err := cas.DefaultDir(func(k string) string { return env[k] })
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
}
