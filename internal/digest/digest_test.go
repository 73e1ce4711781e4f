package digest

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	want := Of([]byte("abc"))
	const hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, B.1
	for _, in := range []string{hex, "sha256:" + hex} {
		if got, err := Parse(in); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "sha256:", hex[1:], hex + "00", "md5:" + hex, strings.Replace(hex, "b", "g", 1)} {
		if _, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) went through", in)
		}
	}
}

func TestZeroIsEmpty(t *testing.T) {
	var d Digest
	if !d.IsZero() || d.String() != "" || d.Hex() != "" || d.Short() != "" {
		t.Errorf("zero value shows as %q", d)
	}
	if d == Of(nil) {
		t.Error("unknown equals the digest of nothing")
	}
	text, err := json.Marshal(map[string]Digest{"d": d})
	if err != nil || string(text) != `{"d":""}` {
		t.Errorf("%s, %v", text, err)
	}
	var back map[string]Digest
	if err := json.Unmarshal(text, &back); err != nil || !back["d"].IsZero() {
		t.Errorf("%v, %v", back, err)
	}
}

func TestReader(t *testing.T) {
	good := NewReader(strings.NewReader("content"), Of([]byte("content")))
	if _, err := io.ReadAll(good); err != nil {
		t.Error(err)
	}
	bad := NewReader(strings.NewReader("contents"), Of([]byte("content")))
	if _, err := io.ReadAll(bad); !errors.Is(err, ErrMismatch) {
		t.Errorf("got %v", err)
	}
}

func TestWriter(t *testing.T) {
	w := NewWriter(io.Discard)
	io.WriteString(w, "con")
	io.WriteString(w, "tent")
	if w.Sum() != Of([]byte("content")) || w.Size() != 7 {
		t.Errorf("%v, %d bytes", w.Sum(), w.Size())
	}
}
