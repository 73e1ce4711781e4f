package artifact

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(key ed25519.PrivateKey) ed25519.PublicKey {
	return key.Public().(ed25519.PublicKey)
}

func signed(t *testing.T, data []byte, key ed25519.PrivateKey) []byte {
	t.Helper()
	sig, err := Sign(data, key)
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

func TestVerifyAcceptsOnlyThisIndexAndThisKey(t *testing.T) {
	data, key := []byte("an index\n"), testKey(1)
	sig := signed(t, data, key)
	if err := Verify(data, sig, public(key)); err != nil {
		t.Fatal(err)
	}
	if err := Verify([]byte("an indey\n"), sig, public(key)); !errors.Is(err, ErrBadSignature) {
		t.Errorf("other data: %v", err)
	}
	if err := Verify(data, sig, public(testKey(2))); !errors.Is(err, ErrWrongKey) {
		t.Errorf("other key: %v", err)
	}
	if by, err := SignedBy(sig); err != nil || !by.Equal(public(key)) {
		t.Errorf("signed by %v, %v", by, err)
	}
}

func TestEveryFlippedBitOfASignatureIsFound(t *testing.T) {
	data, key := []byte("an index\n"), testKey(1)
	sig := signed(t, data, key)
	for i := range len(sig) * 8 {
		bad := bytes.Clone(sig)
		bad[i/8] ^= 1 << (i % 8)
		if Verify(data, bad, public(key)) == nil {
			t.Fatalf("bit %d of byte %d has no meaning", i%8, i/8)
		}
	}
	for _, bad := range [][]byte{nil, []byte("x"), append(bytes.Clone(sig), '\n'), sig[:len(sig)-1], bytes.Repeat(sig, 20)} {
		if Verify(data, bad, public(key)) == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}

// keygen runs the foreign tool; it is part of every Debian that has git.
func keygen(t *testing.T, stdin []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command("ssh-keygen", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen %s: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestOpenSSHAgrees(t *testing.T) {
	dir, data, key := t.TempDir(), encoded(t, sample()), testKey(3)
	block, err := ssh.MarshalPrivateKey(key, "test")
	if err != nil {
		t.Fatal(err)
	}
	signers, err := AllowedSigner("builder", public(key))
	if err != nil {
		t.Fatal(err)
	}
	sig := signed(t, data, key)
	write := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	keyFile, index := write("key", pem.EncodeToMemory(block)), write("index.json", data)
	out := keygen(t, data, "-Y", "verify", "-f", write("signers", []byte(signers)), "-I", "builder", "-n", Namespace, "-s", write("sig", sig))
	if !strings.Contains(out, "Good") || !strings.Contains(out, Fingerprint(public(key))) {
		t.Errorf("ssh-keygen says %q", out)
	}
	keygen(t, nil, "-q", "-Y", "sign", "-f", keyFile, "-n", Namespace, index)
	theirs, err := os.ReadFile(index + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(theirs, sig) {
		t.Errorf("ssh-keygen writes other bytes:\n%s\nwe write\n%s", theirs, sig)
	}
	keygen(t, nil, "-q", "-Y", "sign", "-f", keyFile, "-n", "file", write("other", data))
	other, err := os.ReadFile(filepath.Join(dir, "other.sig"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(data, other, public(key)); err == nil || !strings.Contains(err.Error(), `one for "file"`) {
		t.Errorf("a signature of another namespace: %v", err)
	}
}

func TestParseKey(t *testing.T) {
	key := public(testKey(4))
	line, err := FormatKey(key, "me@here")
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := AllowedSigner("builder", key)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{line, allowed, "# mine\n\n" + line} {
		if got, err := ParseKey([]byte(text)); err != nil || !got.Equal(key) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                                    "no public key",
		line + line:                           "more than one",
		"-----BEGIN OPENSSH PRIVATE KEY-----": "private key",
		"ssh-ed25519 AAAA":                    "not a public key",
		"ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBGurXy9uPKdTsbE0bBc4aBy7Vv4XwCR7AFPcPkm+LjfWVSMB2uOgrvbZ5cyeVxVl1yBzHTRrDlXUEL4KmeqEZnI=": "",
	} {
		_, err := ParseKey([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
