package kubeconfig

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/profilefile"
)

func load(t *testing.T, name string) cluster.Cluster {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "..", "profiles", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Cluster
}

// fromServer is what k3s writes, with a certificate that is valid until end.
func fromServer(t *testing.T, end time.Time) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	certificate := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return fmt.Appendf(nil, `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: https://127.0.0.1:6443
  name: default
contexts:
- context:
    cluster: default
    user: default
  name: default
current-context: default
kind: Config
preferences: {}
users:
- name: default
  user:
    client-certificate-data: %s
    client-key-data: S0VZ
`, certificate, certificate)
}

// The API's own library reads what we write.
func TestMake(t *testing.T) {
	now := time.Now()
	for name, want := range map[string]map[string]string{
		"lab": {"harbor-lab": "https://10.0.2.15:6443", "harbor-lab-n2": "https://10.0.2.16:6443", "harbor-lab-n3": "https://10.0.2.17:6443"},
		"dev": {"harbor-dev": "https://192.168.124.10:6443", "harbor-dev-n1": "https://192.168.124.11:6443", "harbor-dev-n3": "https://192.168.124.13:6443"},
	} {
		c := load(t, name)
		out, err := Make(c, fromServer(t, now.Add(365*24*time.Hour)))
		if err != nil {
			t.Fatal(err)
		}
		k, err := clientcmd.Load(out)
		if err != nil {
			t.Fatal(err)
		}
		if k.CurrentContext != "harbor-"+name || len(k.Contexts) != 4 || string(k.AuthInfos["harbor-"+name+"-admin"].ClientKeyData) != "KEY" {
			t.Errorf("%s: %+v", name, k)
		}
		for context, server := range want {
			if x := k.Contexts[context]; x == nil || k.Clusters[x.Cluster].Server != server || len(k.Clusters[x.Cluster].CertificateAuthorityData) == 0 {
				t.Errorf("%s: context %s: %+v", name, context, x)
			}
		}
		if why := Stale(c, out, now); why != "" {
			t.Errorf("%s: stale at once: %s", name, why)
		}
		if ca, err := CA(out); err != nil || !strings.HasPrefix(string(ca), "-----BEGIN") {
			t.Errorf("%s: CA %q, %v", name, ca, err)
		}
	}
}

func TestStale(t *testing.T) {
	c, now := load(t, "lab"), time.Now()
	good, err := Make(c, fromServer(t, now.Add(40*24*time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	moved := c
	moved.Network.APIVIP = netip.MustParseAddr("10.0.2.10")
	for want, got := range map[string]string{
		"the ways to the API have changed": Stale(moved, good, now),
		"its certificate expires on":       Stale(c, good, now.Add(20*24*time.Hour)),
		"its certificate has expired on":   Stale(c, good, now.Add(50*24*time.Hour)),
		"lacks a CA":                       Stale(c, []byte("kind: Config\n"), now),
		"cannot be read as YAML":           Stale(c, []byte("\tsecret"), now),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if _, err := Make(c, []byte("\tsecret")); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
