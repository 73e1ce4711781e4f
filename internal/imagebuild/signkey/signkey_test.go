package signkey

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
)

func TestDefaultPathFollowsXDG(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "/x")
	if p, err := DefaultPath(); err != nil || p != "/x/slipway/sign_ed25519" {
		t.Errorf("%q, %v", p, err)
	}
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", "/h")
	if p, err := DefaultPath(); err != nil || p != "/h/.config/slipway/sign_ed25519" {
		t.Errorf("%q, %v", p, err)
	}
	t.Setenv("HOME", "")
	if _, err := DefaultPath(); diag.HintOf(err) == "" {
		t.Errorf("no home: %v", err)
	}
}

func TestKeyIsMadeOnceAndPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "slipway", "sign_ed25519")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("nothing there: %v", err)
	}
	first, err := LoadOrCreate(path)
	if err != nil || !first.Created {
		t.Fatalf("%+v, %v", first.Created, err)
	}
	again, err := LoadOrCreate(path)
	if err != nil || again.Created || !again.Private.Equal(first.Private) {
		t.Fatalf("second use made another key (%v)", err)
	}
	for p, want := range map[string]fs.FileMode{path: 0o600, path + ".pub": 0o644, filepath.Dir(path): 0o700 | fs.ModeDir} {
		if st, err := os.Stat(p); err != nil || st.Mode() != want {
			t.Errorf("%s: %v, %v", p, st.Mode(), err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestConcurrentFirstUsesAgree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sign_ed25519")
	keys := make([]Key, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			k, err := LoadOrCreate(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = k
		})
	}
	wg.Wait()
	for _, k := range keys[1:] {
		if !k.Private.Equal(keys[0].Private) {
			t.Fatal("two builds at once sign with different keys")
		}
	}
}

func TestOpenSSHReadsTheKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k")
	k, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ssh-keygen", "-y", "-f", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pub, err := artifact.ParseKey(out)
	if err != nil || !pub.Equal(k.Public()) {
		t.Errorf("ssh-keygen reads another key: %v", err)
	}
	line, err := k.AllowedSigner()
	if err != nil || !strings.HasPrefix(line, `slipway namespaces="slipway-index" ssh-ed25519 AAAA`) {
		t.Errorf("%q, %v", line, err)
	}
}

func TestBadKeysAreRefusedWithAHint(t *testing.T) {
	dir := t.TempDir()
	keygen := func(name string, args ...string) string {
		p := filepath.Join(dir, name)
		out, err := exec.Command("ssh-keygen", append([]string{"-q", "-f", p, "-C", "x"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return p
	}
	good := keygen("good", "-t", "ed25519", "-N", "")
	if _, err := Load(good); err != nil {
		t.Errorf("a key by ssh-keygen: %v", err)
	}
	open := keygen("open", "-t", "ed25519", "-N", "")
	stranger := keygen("stranger", "-t", "ed25519", "-N", "")
	text := filepath.Join(dir, "text")
	pub, err := os.ReadFile(good + ".pub")
	if err := errors.Join(err, os.Chmod(open, 0o640), os.WriteFile(stranger+".pub", pub, 0o644), os.WriteFile(text, pub, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		open:                                     "can be read or written by others (mode 0640)",
		stranger:                                 "does not belong to",
		text:                                     "not a private key in OpenSSH form",
		keygen("ecdsa", "-t", "ecdsa", "-N", ""): "want ed25519",
		keygen("locked", "-t", "ed25519", "-N", "abcde"): "has a passphrase",
	} {
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), want) || diag.HintOf(err) == "" {
			t.Errorf("%s: %v (hint %q)", filepath.Base(path), err, diag.HintOf(err))
		}
	}
	if err := os.Remove(good + ".pub"); err != nil {
		t.Fatal(err)
	}
	k, err := Load(good)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := LoadPublic(good + ".pub"); err != nil || !again.Equal(k.Public()) {
		t.Errorf("a lost public half is not written again: %v", err)
	}
	if _, err := LoadPublic(good); err == nil || !strings.Contains(err.Error(), "private key") {
		t.Errorf("private key as public one: %v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a directory is no key")
	}
}
