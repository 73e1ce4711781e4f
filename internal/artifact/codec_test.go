package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestEncodeDecodeGivesTheSame(t *testing.T) {
	want := sample()
	data, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if !bytes.HasSuffix(data, []byte("}\n")) {
		t.Error("no final newline")
	}
}

func TestDecodeRefusesOtherText(t *testing.T) {
	good := string(encoded(t, sample()))
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown key":      {`"name": "slipway-lab"`, `"nmae": "slipway-lab"`, `unknown field "nmae"`},
		"other case":       {`"name": "slipway-lab"`, `"Name": "slipway-lab"`, "line 3: not in canonical form"},
		"key twice":        {`"name": "slipway-lab",`, `"name": "x", "name": "slipway-lab",`, "not in canonical form"},
		"white space":      {`"name": "slipway-lab"`, `"name":  "slipway-lab"`, "not in canonical form"},
		"bad digest":       {`"plan": "sha256:`, `"plan": "sha512:`, "not a sha256 digest"},
		"bare digest":      {`"plan": "sha256:`, `"plan": "`, "not in canonical form"},
		"empty digest":     {`"digest": "sha256:` + sample().Files[1].Digest.Hex(), `"digest": "`, "no digest"},
		"wrong type":       {`"size": 150`, `"size": "150"`, "line 19: json: cannot unmarshal string"},
		"fraction":         {`"size": 150`, `"size": 150.0`, "cannot unmarshal"},
		"other format":     {Format, "slipway-index/2", `index format is "slipway-index/2"`},
		"a second value":   {"\n}\n", "\n}\n{}\n", "more after the end"},
		"no final newline": {"\n}\n", "\n}", "not in canonical form"},
		"cut off":          {"\n}\n", "", "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatal("the test changed nothing")
			}
			_, err := Decode([]byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestDecodeRefusesTooMuch(t *testing.T) {
	if _, err := Decode(make([]byte, MaxIndexSize+1)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
}

func TestEveryFlippedByteOfAnIndexIsAnErrorOrAnotherIndex(t *testing.T) {
	good := encoded(t, sample())
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		x, err := Decode(bad)
		if err == nil && reflect.DeepEqual(x, sample()) {
			t.Fatalf("byte %d (%q for %q) changes nothing", i, bad[i], good[i])
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, sample()))
	f.Add([]byte(`{"format":"slipway-index/1"}`))
	f.Add([]byte(`{"files":[{"name":"../x"}],"disk":{"chunks":[{"offset":-1}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Encode(x)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("accepted, but encodes to something else (%v)", err)
		}
		for i := range x.Disk.Chunks {
			if off, n := x.Disk.Span(i); off < 0 || n <= 0 || off+n > x.Disk.Size {
				t.Fatalf("chunk %d spans %d+%d of %d", i, off, n, x.Disk.Size)
			}
		}
	})
}

func TestErrorsCanBeToldApart(t *testing.T) {
	var b bytes.Buffer
	if err := json.Compact(&b, encoded(t, sample())); err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(b.Bytes()); !errors.Is(err, ErrNotCanonical) {
		t.Errorf("got %v", err)
	}
}
