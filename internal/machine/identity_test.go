package machine

import (
	"strings"
	"testing"
)

func TestJunk(t *testing.T) {
	for _, v := range []string{
		"", " ", "0", "00000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "00000000-0000-0000-0000-000000000000",
		"03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009", "To Be Filled By O.E.M.", "to be filled by o.e.m", "Default string", "System Serial Number",
		"None", "none", "N/A", "0123456789", "123456789", "1234567890", "1234", "xxxxxxxx", "XXXX-XXXX", "Not Specified", "Not Applicable", "Unknown", "INVALID",
		"Default", "O.E.M.", "........", "-", "Chassis Serial Number", "SerNum", "a\x00b", "\xff\xff\xff", "ünique", "12345678-1234-5678-90ab-cddeefaabbcc",
	} {
		if Junk(v) == "" {
			t.Errorf("%q passes as an identity", v)
		}
	}
	for _, v := range []string{"PF3ABCDE", "n1", "MJ0A1B2C", "4c4c4544-0042-3510-8052-b4c04f4e4d32", "GHJ-1123-9", "52:54:00:12:34:56", "G6BN946012345", "7654321", "QM00001", "Notebook77", "1235"} {
		if why := Junk(v); why != "" {
			t.Errorf("%q is no identity: %s", v, why)
		}
	}
}

func TestParseMAC(t *testing.T) {
	for in, want := range map[string]string{
		"52:54:00:AB:cd:01": "52:54:00:ab:cd:01", "52-54-00-AB-CD-01": "52:54:00:ab:cd:01", "5254.00ab.cd01": "52:54:00:ab:cd:01", "525400abcd01": "52:54:00:ab:cd:01",
		"00:00:00:00:00:00": "", "ff:ff:ff:ff:ff:ff": "", "01:00:5e:00:00:01": "", "52:54:00:ab:cd": "", "52:54:00:ab:cd:zz": "", "": "", "aabbccddeeff00": "",
	} {
		got, err := ParseMAC(in)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func FuzzParseMAC(f *testing.F) {
	f.Add("52:54:00:ab:cd:01")
	f.Add("52-54-00-AB-CD-01")
	f.Fuzz(func(t *testing.T, s string) {
		mac, err := ParseMAC(s)
		if err != nil {
			return
		}
		if again, err := ParseMAC(string(mac)); err != nil || again != mac || len(mac) != 17 {
			t.Errorf("%q became %q and then %q, %v", s, mac, again, err)
		}
	})
}

func TestContradiction(t *testing.T) {
	real, other := "4c4c4544-0042-3510-8052-b4c04f4e4d32", "4c4c4544-0042-3510-8052-b4c04f4e4d33"
	for _, c := range []struct {
		a, b Identity
		want bool
	}{
		{Identity{UUID: real}, Identity{UUID: other}, true},
		{Identity{UUID: real}, Identity{UUID: strings.ToUpper(real)}, false},
		{Identity{UUID: real}, Identity{UUID: "44454c4c-4200-1035-8052-b4c04f4e4d32"}, false}, // read in the other byte order
		{Identity{UUID: real}, Identity{UUID: "44454c4c-4200-1035-8052-b4c04f4e4d33"}, true},
		{Identity{UUID: real}, Identity{}, false},
		{Identity{Serial: "A11", UUID: real}, Identity{Serial: "A12", UUID: real}, true},
		{Identity{Serial: "Default string"}, Identity{Serial: "A12"}, false},
		{Identity{Serial: " A12 "}, Identity{Serial: "a12"}, false},
	} {
		if got := Contradiction(c.a, c.b); (got != "") != c.want {
			t.Errorf("%v and %v: %q", c.a, c.b, got)
		}
		if (Contradiction(c.a, c.b) != "") != (Contradiction(c.b, c.a) != "") {
			t.Errorf("%v and %v: depends on the order", c.a, c.b)
		}
	}
}

func TestKeysLeaveJunkOut(t *testing.T) {
	got := Keys(nil, Identity{Serial: "To Be Filled By O.E.M.", UUID: "03000200-0400-0500-0006-000700080009"})
	if len(got) != 0 {
		t.Errorf("junk names a machine: %v", got)
	}
	if doubts := Doubts(Identity{Serial: "None", UUID: "A1B2"}); len(doubts) != 1 || !strings.Contains(doubts[0], "placeholder") {
		t.Errorf("doubts: %q", doubts)
	}
}
