package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/slipway/slipway/internal/diag"
)

// person is somebody with an age key.
type person struct {
	ids       Identities
	recipient string
}

func newPerson(t *testing.T) person {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	ids, err := Parse([]byte("# made by a test\n"+key.String()+"\n"), "test")
	if err != nil {
		t.Fatal(err)
	}
	return person{ids, key.Recipient().String()}
}

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func makers(values map[string]string) map[string]func() (string, error) {
	out := map[string]func() (string, error){}
	for name, value := range values {
		out[name] = func() (string, error) { return value, nil }
	}
	return out
}

func TestComplete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.secrets.yaml")
	anna, backup, eve := newPerson(t), newPerson(t), newPerson(t)
	both := []string{anna.recipient, backup.recipient}
	made, err := Complete(path, both, anna.ids, makers(map[string]string{Token: "canary-token-one"}), now)
	if err != nil || !slices.Equal(made, []string{Token}) {
		t.Fatalf("made %q, %v", made, err)
	}
	first := read(t, path)
	if bytes.Contains(first, []byte("canary")) {
		t.Fatalf("the file shows the value:\n%s", first)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	for _, p := range []person{anna, backup} {
		f, err := Open(path, p.ids)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Need(Token); got != "canary-token-one" || err != nil {
			t.Errorf("token %q, %v", got, err)
		}
		if text := fmt.Sprintf("%v %+v %#v %s", f, f, f, f); strings.Contains(text, "canary") {
			t.Errorf("formatting shows the value: %s", text)
		}
	}
	_, err = Open(path, eve.ids)
	var noKey *NoKeyError
	if !errors.As(err, &noKey) || !slices.Equal(noKey.Want, both) || diag.HintOf(err) == "" {
		t.Errorf("a stranger gets %v", err)
	}
	if made, err = Complete(path, nil, anna.ids, makers(map[string]string{Token: "other"}), now); made != nil || err != nil {
		t.Errorf("nothing was missing, and made %q, %v", made, err)
	}
	if !bytes.Equal(first, read(t, path)) {
		t.Error("a file that lacks nothing was written")
	}
	if made, err = Complete(path, nil, backup.ids, makers(map[string]string{Token: "other", GitIdentity: "canary-git"}), now); err != nil || !slices.Equal(made, []string{GitIdentity}) {
		t.Errorf("made %q, %v", made, err)
	}
	f, err := Open(path, anna.ids)
	if err != nil || f.values[Token] != "canary-token-one" || f.values[GitIdentity] != "canary-git" {
		t.Errorf("%v after adding, %v", f, err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCompleteRefuses(t *testing.T) {
	dir := t.TempDir()
	anna, eve := newPerson(t), newPerson(t)
	sealed := filepath.Join(dir, "sealed.yaml")
	if _, err := Complete(sealed, []string{anna.recipient, eve.recipient}, anna.ids, makers(map[string]string{Token: "x-secret-x"}), now); err != nil {
		t.Fatal(err)
	}
	stranger := newPerson(t)
	for name, c := range map[string]struct {
		path       string
		recipients []string
		ids        Identities
		want       string
	}{
		"one recipient":       {filepath.Join(dir, "a"), []string{anna.recipient}, anna.ids, "1 recipients"},
		"the same one twice":  {filepath.Join(dir, "a"), []string{anna.recipient, anna.recipient}, anna.ids, "1 recipients"},
		"no recipient at all": {filepath.Join(dir, "a"), []string{anna.recipient, "age1nonsense"}, anna.ids, "no age recipient"},
		"somebody else's":     {sealed, nil, stranger.ids, "no age key at hand"},
	} {
		before, _ := os.ReadDir(dir)
		_, err := Complete(c.path, c.recipients, c.ids, makers(map[string]string{GitToken: "y-secret-y"}), now)
		if err == nil || !strings.Contains(err.Error(), c.want) || diag.HintOf(err) == "" {
			t.Errorf("%s: %v, want %q and a hint", name, err, c.want)
		}
		if after, _ := os.ReadDir(dir); len(after) != len(before) {
			t.Errorf("%s left a file behind", name)
		}
	}
}

func TestTampering(t *testing.T) {
	anna := newPerson(t)
	sealed, err := Encrypt([]byte("a: first secret\nb: second secret\n"), []string{anna.recipient}, "", now)
	if err != nil {
		t.Fatal(err)
	}
	if clear, err := Decrypt(sealed, anna.ids); err != nil || string(clear) != "a: first secret\nb: second secret\n" {
		t.Fatalf("%q, %v", clear, err)
	}
	lines := strings.SplitAfter(string(sealed), "\n")
	for name, text := range map[string]string{
		"values exchanged": strings.Replace(lines[0], "a:", "b:", 1) + strings.Replace(lines[1], "b:", "a:", 1) + strings.Join(lines[2:], ""),
		"value dropped":    strings.Join(lines[1:], ""),
		"plain value":      "c: in the open\n" + string(sealed),
	} {
		if _, err := Decrypt([]byte(text), anna.ids); err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
	if _, err := Decrypt([]byte("a: b\n"), anna.ids); !errors.Is(err, ErrNotEncrypted) {
		t.Errorf("plain document: %v", err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	key := "AGE-SECRET-KEY-1"
	anna := newPerson(t)
	good := filepath.Join(dir, "key")
	bad := filepath.Join(dir, "bad")
	write(t, good, anna.ids.Text())
	write(t, bad, []byte("AGE-SECRET-KEY-1CANARYCANARY\n"))
	env := func(values map[string]string) func(string) string { return func(n string) string { return values[n] } }
	for _, values := range []map[string]string{{keyFileEnv: good}, {keyEnv: string(anna.ids.Text())}} {
		ids, err := Find("", env(values), dir)
		if err != nil || !slices.Equal(ids.Recipients(), []string{anna.recipient}) || !strings.HasPrefix(ids.Values()[0], key) {
			t.Errorf("%v, %v", ids, err)
		}
		if text := fmt.Sprintf("%v %#v", ids, ids); strings.Contains(text, key) {
			t.Errorf("formatting shows the key: %s", text)
		}
	}
	if _, err := Find("", env(nil), dir); err == nil || !strings.Contains(diag.HintOf(err), "--age-key") {
		t.Errorf("no key anywhere: %v", err)
	}
	if _, err := Find(filepath.Join(dir, "none"), env(nil), dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("named file that is not there: %v", err)
	}
	if _, err := Find(bad, env(nil), dir); err == nil || strings.Contains(err.Error()+diag.HintOf(err), "CANARY") {
		t.Errorf("bad key: %v", err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRedactor(t *testing.T) {
	var r Redactor
	r.Add("canary-token", "-----BEGIN KEY-----\nline-of-the-key-1\nline-of-the-key-2\n-----END KEY-----\n", "no")
	in := "a canary-token, Y2FuYXJ5LXRva2Vu, line-of-the-key-2 and no more"
	if got, want := r.Text(in), "a <redacted>, <redacted>, <redacted> and no more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
