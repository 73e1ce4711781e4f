package pxe

import (
	"bytes"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// FuzzPacket: every message is read and written as the library does it, also with
// memory that held another message before.
func FuzzPacket(f *testing.F) {
	names, err := filepath.Glob("testdata/*.hex")
	if err != nil || len(names) == 0 {
		f.Fatal(err, len(names))
	}
	for _, n := range names {
		f.Add(raw(f, strings.TrimSuffix(filepath.Base(n), ".hex")))
	}
	long := packet(f, "ovmf-discover")
	long.Options[200] = bytes.Repeat([]byte("long "), 120)
	long.Options[optRelay] = []byte{1, 2, 3, 4}
	long.Options[224] = nil
	f.Add(long.ToBytes())
	f.Add(long.ToBytes()[:atOptions])
	used := &dhcpv4.DHCPv4{}
	if err := Parse(long.ToBytes(), used); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		want, failed := dhcpv4.FromBytes(b)
		fresh, again := &dhcpv4.DHCPv4{}, *used
		if err := Parse(b, fresh); (err == nil) != (failed == nil) {
			t.Fatalf("got %v, the library says %v", err, failed)
		}
		if failed != nil {
			return
		}
		for name, got := range map[string]*dhcpv4.DHCPv4{"fresh": fresh, "used": &again} {
			if err := Parse(b, got); err != nil || !same(got, want) {
				t.Errorf("%s: %v\n%#v\n%#v", name, err, got, want)
			}
			if out := Append([]byte("before"), got)[6:]; !bytes.Equal(out, want.ToBytes()) {
				t.Errorf("%s: wrote\n% x\n% x", name, out, want.ToBytes())
			}
		}
	})
}

// same compares two messages; an empty value is as good as none.
func same(a, b *dhcpv4.DHCPv4) bool {
	if len(a.Options) != len(b.Options) {
		return false
	}
	for code, value := range b.Options {
		if got, ok := a.Options[code]; !ok || !bytes.Equal(got, value) {
			return false
		}
	}
	x, y := *a, *b
	x.Options, y.Options = nil, nil
	return reflect.DeepEqual(x, y)
}

// What a decision keeps of a request does not change with the memory that the
// request was read into.
func TestParsedMessagesKeepApart(t *testing.T) {
	b := raw(t, "ovmf-discover")
	p := &dhcpv4.DHCPv4{}
	if err := Parse(b, p); err != nil {
		t.Fatal(err)
	}
	p.Options[optUUID] = append(p.Options[optUUID], 0xff)
	if !bytes.Equal(b, raw(t, "ovmf-discover")) {
		t.Error("appending to an option wrote over the next one")
	}
}
