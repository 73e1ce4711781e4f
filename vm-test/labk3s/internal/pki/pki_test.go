package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func ensure(t *testing.T, f Files, s Server) {
	t.Helper()
	if err := f.Ensure(s, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// verify reports whether the pair is good for a use and a name below the authority.
func verify(t *testing.T, ca, pair Pair, name string, use x509.ExtKeyUsage) error {
	t.Helper()
	a, err := Load(ca)
	if err != nil {
		t.Fatal(err)
	}
	p, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: name, KeyUsages: []x509.ExtKeyUsage{use}})
	return err
}

func TestEnsure(t *testing.T) {
	f := At(t.TempDir())
	ensure(t, f, Server{Names: []string{"n1", "192.0.2.1"}, NodeName: "n1", NodeIP: "192.0.2.1", APIURL: "https://127.0.0.1:6444"})
	for _, name := range []string{"n1", "192.0.2.1"} {
		if err := verify(t, f.ServerCA(), f.APIServing(), name, x509.ExtKeyUsageServerAuth); err != nil {
			t.Error(err)
		}
	}
	if verify(t, f.ServerCA(), f.APIServing(), "n2", x509.ExtKeyUsageServerAuth) == nil {
		t.Error("the API's certificate is good for a name that it was not given")
	}
	if err := verify(t, f.EtcdPeerCA(), f.EtcdPeer(), "192.0.2.1", x509.ExtKeyUsageClientAuth); err != nil {
		t.Error(err)
	}
	if verify(t, f.EtcdServerCA(), f.EtcdPeer(), "", x509.ExtKeyUsageClientAuth) == nil {
		t.Error("a peer of etcd passes for a client")
	}
	if verify(t, f.ClientCA(), f.AuthProxy(), "", x509.ExtKeyUsageClientAuth) == nil {
		t.Error("the certificate of the front proxy passes for a user's")
	}
	if _, err := os.Stat(f.Encryption()); err == nil {
		t.Error("there is a key for Secrets although none was asked for")
	}
}

func TestEnsureKeepsWhatIsShared(t *testing.T) {
	f := At(t.TempDir())
	s := Server{NodeName: "n1", NodeIP: "192.0.2.1", Encrypt: true}
	ensure(t, f, s)
	before := map[string][]byte{}
	for name, path := range f.Shared() {
		if name != "PasswdFile" {
			before[path] = read(t, path)
		}
	}
	admin := read(t, f.Admin().Cert)
	ensure(t, f, s)
	for path, text := range before {
		if !bytes.Equal(text, read(t, path)) {
			t.Errorf("%s was made anew", path)
		}
	}
	if bytes.Equal(admin, read(t, f.Admin().Cert)) {
		t.Error("the administrator's certificate was not signed anew")
	}
}

func TestJoinedServerHasTheSame(t *testing.T) {
	first, second := At(t.TempDir()), At(t.TempDir())
	s := Server{NodeName: "n1", NodeIP: "192.0.2.1", Encrypt: true}
	ensure(t, first, s)
	writeTo(t, first.Passwords(), "x,server,server,k3s:server\n")
	doc, err := first.Export()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Import(doc); err != nil {
		t.Fatal(err)
	}
	ensure(t, second, s)
	for name, path := range first.Shared() {
		if !bytes.Equal(read(t, path), read(t, second.Shared()[name])) {
			t.Errorf("%s differs", name)
		}
	}
	if err := verify(t, first.ClientCA(), second.Admin(), "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Error(err)
	}
}

func TestImportOfNothing(t *testing.T) {
	f := At(t.TempDir())
	for _, doc := range []string{"", "{}", `{"ServerCA":{}}`} {
		if f.Import([]byte(doc)) == nil {
			t.Errorf("%q was taken for the files of a server", doc)
		}
	}
	if entries, _ := os.ReadDir(f.dir); len(entries) != 0 {
		t.Error("something was written")
	}
}

func writeTo(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
