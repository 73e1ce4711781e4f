// Package apttest makes a Debian archive on 127.0.0.1, signed by a key of its own,
// for tests that want the real apt and no network.
package apttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/hosttool"
)

// Key is an OpenPGP key that tests sign their archives with.
type Key struct {
	Keyring string // file that apt checks signatures with
	home    string
}

// NewKey makes a key with gpg, and the keyring that apt checks with.
func NewKey(t *testing.T, name string) Key {
	t.Helper()
	// Not t.TempDir: gpg's agent wants a short path for its socket.
	home, err := os.MkdirTemp("", "gpg")
	if err != nil {
		t.Fatal(err)
	}
	k := Key{home: home, Keyring: filepath.Join(t.TempDir(), name+".gpg")}
	t.Cleanup(func() {
		if err := hosttool.Run(context.Background(), hosttool.Cmd{Name: "gpgconf", Args: []string{"--homedir", home, "--kill", "gpg-agent"}}); err != nil {
			t.Error(err)
		}
		os.RemoveAll(home)
	})
	k.gpg(t, nil, "--passphrase", "", "--quick-generate-key", name+" <archive@example.org>", "ed25519", "sign", "never")
	public := k.gpg(t, nil, "--export")
	if err := os.WriteFile(k.Keyring, public, 0o644); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k Key) gpg(t *testing.T, in []byte, args ...string) []byte {
	t.Helper()
	args = append([]string{"--homedir", k.home, "--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback"}, args...)
	out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: "gpg", Args: args, Stdin: bytes.NewReader(in)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Archive is a Debian archive on 127.0.0.1.
type Archive struct {
	*httptest.Server
	Files map[string][]byte // by path; a test may change them while nobody asks

	key Key
}

// New makes an empty archive.
func New(t *testing.T, k Key) *Archive {
	t.Helper()
	a := &Archive{key: k, Files: map[string][]byte{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := a.Files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}))
	t.Cleanup(a.Close)
	return a
}

// Suite publishes a suite of an archive, signed. validFor is how long from now
// the index counts as current.
func (a *Archive) Suite(t *testing.T, archive, suite, packages string, validFor time.Duration) {
	t.Helper()
	index := []byte(packages)
	now := time.Now().UTC()
	release := fmt.Sprintf(`Origin: Test
Label: Test
Suite: %[1]s
Codename: %[1]s
Date: %[2]s
Valid-Until: %[3]s
Architectures: amd64
Components: main
SHA256:
 %[4]x %[5]d main/binary-amd64/Packages
`, suite, now.Add(-time.Hour).Format("Mon, 02 Jan 2006 15:04:05 UTC"), now.Add(validFor).Format("Mon, 02 Jan 2006 15:04:05 UTC"), sha256.Sum256(index), len(index))
	base := "/" + archive + "/dists/" + suite
	a.Files[base+"/main/binary-amd64/Packages"] = index
	a.Files[base+"/InRelease"] = a.key.gpg(t, []byte(release), "--clearsign", "--digest-algo", "SHA256")
}

// Stanza is a package for an index, of which there is no file; more are further
// fields, each with a newline.
func Stanza(name, version, more string) string {
	return fmt.Sprintf("Package: %[1]s\nVersion: %[2]s\nArchitecture: amd64\nMaintainer: T <t@example.org>\n%[3]sFilename: pool/main/%[1]s_%[2]s_amd64.deb\nSize: 100\nMD5sum: %032[4]d\nSHA256: %[5]x\nDescription: test\n\n",
		name, version, more, 7, sha256.Sum256([]byte(name+version)))
}
