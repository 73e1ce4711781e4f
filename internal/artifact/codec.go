package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Limits of an index. They bound what a reader that has not yet checked the
// signature must be ready to hold.
const (
	MaxIndexSize = 16 << 20 // bytes of JSON
	MaxFiles     = 4096
	MaxChunks    = 1 << 16
	MaxChunkSize = 64 << 20 // bytes of raw image
)

// Encode writes the index in its canonical form: JSON with the keys in the order
// of the types, two spaces a level, one final newline. An index that Decode would
// refuse is refused.
func Encode(x Index) ([]byte, error) {
	if err := x.Validate(); err != nil {
		return nil, fmt.Errorf("encoding index: %w", err)
	}
	return encode(x)
}

func encode(x Index) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(x); err != nil {
		return nil, fmt.Errorf("encoding index: %w", err)
	}
	return b.Bytes(), nil
}

// ErrNotCanonical is wrapped by the error for an index that says the same in other
// bytes than Encode would write: another order, other white space, a key twice.
var ErrNotCanonical = errors.New("not in canonical form")

// Decode reads an index and checks it as Validate does. It is strict: unknown
// keys, a second value, and any spelling that Encode would not write are errors,
// so that an accepted index has exactly one meaning.
func Decode(data []byte) (Index, error) {
	if len(data) > MaxIndexSize {
		return Index{}, fmt.Errorf("index has %d bytes, more than %d", len(data), MaxIndexSize)
	}
	x, err := decode(data)
	if err != nil {
		return Index{}, err
	}
	if x.Format != Format {
		return Index{}, fmt.Errorf("index format is %q, this program reads %q", x.Format, Format)
	}
	if err := x.Validate(); err != nil {
		return Index{}, fmt.Errorf("index: %w", err)
	}
	again, err := encode(x)
	if err != nil {
		return Index{}, err
	}
	if !bytes.Equal(data, again) {
		return Index{}, fmt.Errorf("index line %d: %w", firstDifference(data, again), ErrNotCanonical)
	}
	return x, nil
}

func decode(data []byte) (Index, error) {
	var x Index
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&x); err != nil {
		return Index{}, fmt.Errorf("index line %d: %w", lineOf(data, dec.InputOffset(), err), err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Index{}, fmt.Errorf("index line %d: more after the end", lineOf(data, dec.InputOffset(), nil))
	}
	return x, nil
}

// lineOf is the line of a decoding error, or of offset when the error knows no place.
func lineOf(data []byte, offset int64, err error) int {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	offset = min(max(offset, 0), int64(len(data)))
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

func firstDifference(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return 1 + bytes.Count(a[:n], []byte("\n"))
}
