package efivar

import (
	"os"
	"testing"
)

func TestEncoding(t *testing.T) {
	for _, text := range []string{"", "slot-b.conf", "ESP ünïcode 𝄞"} {
		got, err := Decode(Encode(text))
		if err != nil || got != text {
			t.Errorf("%q came back as %q, %v", text, got, err)
		}
	}
	for _, raw := range [][]byte{nil, {7, 0, 0}, {7, 0, 0, 0, 'a'}} {
		if _, err := Decode(raw); err == nil {
			t.Errorf("%v was read as a text", raw)
		}
	}
}

func TestVariables(t *testing.T) {
	dir := t.TempDir()
	if _, ok, err := Get(dir, BootCountPath); ok || err != nil {
		t.Errorf("an absent variable: %v, %v", ok, err)
	}
	if err := Set(dir, EntryOneShot, "slot-b.conf"); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := Get(dir, EntryOneShot); got != "slot-b.conf" || !ok || err != nil {
		t.Errorf("got %q, %v, %v", got, ok, err)
	}
	// The name that the kernel and systemd use.
	if _, err := os.Stat(dir + "/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"); err != nil {
		t.Error(err)
	}
}
