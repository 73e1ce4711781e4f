package repro

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/signkey"
)

// verify runs imagebuild verify on a build of this workshop.
func (w *workshop) verify(t *testing.T, more ...string) outcome {
	t.Helper()
	return w.run(t.Context(), t, append([]string{"verify", w.path("out", "lab"), "--key", w.path("key.pub")}, more...)...)
}

// rebuild is verify --rebuild, which trusts nothing but the packages.
func (w *workshop) rebuild(t *testing.T) outcome {
	t.Helper()
	return w.verify(t, "--rebuild", "-p", "profiles/lab.yaml", "--node", "n1", "--cache", w.path("cache"))
}

// rebuildAgrees has a sound build made again.
func rebuildAgrees(t *testing.T, w *workshop) {
	if o := w.rebuild(t); o.code != 0 {
		t.Errorf("exit code %d:\n%s%s", o.code, o.stdout, o.said)
	}
}

// rebuildDisagrees has a build made again in which one byte is different though
// everything in it agrees and the signature is good: only a rebuild can tell.
func rebuildDisagrees(t *testing.T, w *workshop) {
	const victim = "netboot/ipxe/undionly.kpxe"
	w.plant(t, victim)
	if o := w.verify(t); o.code != 0 {
		t.Errorf("the planted difference was to be consistent: exit code %d:\n%s%s", o.code, o.stdout, o.said)
	}
	o := w.rebuild(t)
	t.Log(strings.TrimSpace(o.stdout))
	if o.code != 1 || !strings.Contains(o.stdout, victim) {
		t.Errorf("exit code %d, want 1 and %s named:\n%s%s", o.code, victim, o.stdout, o.said)
	}
}

// plant turns a bit in a file of the build, and mends everything that would give
// it away: the provenance, the index and the signature.
func (w *workshop) plant(t *testing.T, name string) {
	t.Helper()
	index := readIndex(t, w.path("out", "lab"))
	before, after := w.rewrite(t, &index, name, func(data []byte) []byte {
		data[len(data)/2] ^= 1
		return data
	})
	w.rewrite(t, &index, "provenance.json", func(data []byte) []byte {
		return bytes.ReplaceAll(data, []byte(before.Hex()), []byte(after.Hex()))
	})
	text, err := artifact.Encode(index)
	must(t, err)
	key, err := signkey.Load(w.path("key"))
	must(t, err)
	signature, err := artifact.Sign(text, key.Private)
	must(t, err)
	must(t, os.WriteFile(w.path("out", "lab", artifact.IndexName), text, 0o644))
	must(t, os.WriteFile(w.path("out", "lab", artifact.SignatureName), signature, 0o644))
}

// rewrite changes a file and its entry in the index.
func (w *workshop) rewrite(t *testing.T, index *artifact.Index, name string, change func([]byte) []byte) (before, after digest.Digest) {
	t.Helper()
	path := filepath.Join(w.path("out", "lab"), name)
	data, err := os.ReadFile(path)
	must(t, err)
	data = change(data)
	must(t, os.WriteFile(path, data, 0o644))
	for i, f := range index.Files {
		if f.Name == name {
			before, after = f.Digest, digest.Of(data)
			index.Files[i].Digest, index.Files[i].Size = after, int64(len(data))
			return before, after
		}
	}
	t.Fatalf("the index does not name %s", name)
	return
}
