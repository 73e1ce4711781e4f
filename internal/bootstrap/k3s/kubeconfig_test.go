package k3s

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/sequence"
)

// admin is k3s's kubeconfig, and the digest of the CA in it.
func admin(t *testing.T) (string, digest.Digest) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(365 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return fmt.Sprintf("clusters: [{name: default, cluster: {certificate-authority-data: %s, server: 'https://127.0.0.1:6443'}}]\n"+
		"users: [{name: default, user: {client-certificate-data: %s, client-key-data: S0VZ}}]\n", text, text), digest.Of(der)
}

func TestKubeconfig(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "state", "kubeconfig")
	r := sequence.Runner{Now: time.Now, On: func(sequence.Event) {}}
	step := Kubeconfig(w.options(), path, time.Now)
	if pending, err := r.Plan(t.Context(), []sequence.Step{step}); pending != 1 || err != nil {
		t.Errorf("before there is a cluster: %d, %v", pending, err)
	}
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	text, ca := admin(t)
	for _, f := range w.nodes {
		f.files[k3sconf.KubeconfigPath], f.k.CA = text, ca
	}
	for run, want := range []int{1, 0} {
		if did, err := r.Run(t.Context(), []sequence.Step{step}); did != want || err != nil {
			t.Errorf("run %d did %d, %v", run, did, err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), "https://10.0.2.16:6443") || strings.Contains(string(data), "127.0.0.1") {
		t.Errorf("%v\n%s", err, data)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// The second spoils on top of the first: what is made anew is private again.
	for _, c := range []struct {
		name  string
		spoil func()
	}{
		{"others can read it", func() { os.Chmod(path, 0o644) }},
		{"it is of another cluster", func() {
			for _, f := range w.nodes {
				f.k.CA = digest.Of([]byte("another"))
			}
		}},
	} {
		for _, f := range w.nodes {
			f.k.CA = ca
		}
		if _, err := r.Run(t.Context(), []sequence.Step{step}); err != nil {
			t.Fatal(err)
		}
		c.spoil()
		changes, err := step.Observe(t.Context())
		if err != nil || len(changes) != 1 || changes[0].Why != c.name {
			t.Errorf("%s: %v, %v", c.name, changes, err)
		}
	}
}
