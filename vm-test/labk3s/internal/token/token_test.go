package token

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of nothing

func TestParse(t *testing.T) {
	for in, want := range map[string]Token{
		"secret":                           {Password: "secret"},
		"K10" + hash + "::server:secret":   {CAHash: hash, User: "server", Password: "secret"},
		"K10" + hash + "::node:a:b\n":      {CAHash: hash, User: "node", Password: "a:b"},
		"  with-white-space-around-it \n ": {Password: "with-white-space-around-it"},
	} {
		if got, err := Parse(in); err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", " \n", "K10abc::server:secret", "K10" + hash, "K10" + hash + "::server", "K10" + hash + "::server:"} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %+v without an error", in, got)
		}
	}
}

func TestFullIsParsed(t *testing.T) {
	ca := []byte("a certificate")
	full := Full(ca, Server, "secret")
	if !strings.HasPrefix(full, "K10") {
		t.Errorf("a full token is %q", full)
	}
	got, err := Parse(full)
	if err != nil || got.User != Server || got.Password != "secret" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := got.Check(ca); err != nil {
		t.Error(err)
	}
	if err := got.Check([]byte("another certificate")); err == nil {
		t.Error("a token is good for another cluster")
	}
}

func TestPasswords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "passwd")
	if p, err := ReadPasswords(file); err != nil || len(p) != 0 {
		t.Errorf("no file: %v, %v", p, err)
	}
	want := Passwords{Server: "a,b\"c", Node: "d"}
	if err := want.Write(file); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", st.Mode(), err)
	}
	got, err := ReadPasswords(file)
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
	for _, c := range []struct{ user, password, role string }{
		{Server, "a,b\"c", "k3s:server"},
		{Node, "d", "k3s:agent"},
		{Server, "d", ""},
		{"nobody", "", ""},
	} {
		if r := got.Role(c.user, c.password); r != c.role {
			t.Errorf("%s with %q is %q, want %q", c.user, c.password, r, c.role)
		}
	}
}
