package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/vm-test/controlplane"
)

func TestSnapshot(t *testing.T) {
	p := controlplane.Start(t, controlplane.Options{})
	c := connect(t, p)
	state := await(t, c, "one healthy voter", healthy(1))
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	var told int64
	s, err := c.Snapshot(t.Context(), path, func(n int64) { told = n })
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || s.Digest != digest.Of(data) || s.Size != int64(len(data)) || told != s.Size || s.Revision < 1 || s.Cluster != state.Cluster || s.Version != "3.6.0" {
		t.Errorf("%+v, told %d, %v", s, told, err)
	}
	if !bytes.Contains(data, []byte("/registry/namespaces/kube-system")) {
		t.Error("the cluster's objects are not in it")
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := c.Snapshot(ctx, filepath.Join(dir, "b.db"), func(int64) { cancel() }); err == nil {
		t.Error("a snapshot that was cut off is no error")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestVerify(t *testing.T) {
	data := make([]byte, 4*sector)
	sum := sha256.Sum256(data)
	whole := append(data, sum[:]...)
	flipped := bytes.Clone(whole)
	flipped[7] ^= 1
	for name, c := range map[string]struct {
		data []byte
		ok   bool
	}{
		"whole": {whole, true}, "flipped": {flipped, false}, "cut": {whole[:len(whole)-1], false},
		"without its hash": {data, false}, "cut at a sector": {whole[:2*sector+sha256.Size], false}, "empty": {nil, false}, "only a hash": {sum[:], false},
	} {
		err := Verify(bytes.NewReader(c.data))
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if name == "flipped" && !errors.Is(err, digest.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
