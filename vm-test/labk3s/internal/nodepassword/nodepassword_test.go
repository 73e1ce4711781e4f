package nodepassword

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestHash(t *testing.T) {
	hash, err := Hash("secret")
	if err != nil || !strings.HasPrefix(hash, "$1:") || strings.Contains(hash, "secret") {
		t.Fatalf("got %q, %v", hash, err)
	}
	if err := Verify(hash, "secret"); err != nil {
		t.Error(err)
	}
	again, err := Hash("secret")
	if err != nil || again == hash {
		t.Errorf("two hashes of one password are the same, or %v", err)
	}
	for _, c := range []struct{ hash, password string }{
		{hash, "Secret"},
		{hash, ""},
		{"", "secret"},
		{"secret", "secret"},
		{strings.Replace(hash, ":15:", ":40:", 1), "secret"},
		{strings.TrimSuffix(hash, hash[len(hash)-4:]), "secret"},
	} {
		if err := Verify(c.hash, c.password); !errors.Is(err, ErrWrong) {
			t.Errorf("Verify(%q, %q) = %v", c.hash, c.password, err)
		}
	}
}

func TestOwn(t *testing.T) {
	dir := t.TempDir()
	first, err := Own(dir + "/node")
	if err != nil || len(first) != 32 {
		t.Fatalf("got %q, %v", first, err)
	}
	second, err := Own(dir + "/node")
	if err != nil || second != first {
		t.Errorf("the password changed from %q to %q, %v", first, second, err)
	}
	if st, err := os.Stat(File(dir + "/node")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", st, err)
	}
}
