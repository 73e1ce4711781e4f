// Package digest holds SHA-256 values as they are written in locks, plans and
// indexes ("sha256:<64 hex digits>"), and readers that check while they read.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

const prefix = "sha256:"

// Digest is a SHA-256 value. The zero value means "not known" and marshals to "".
type Digest struct {
	sum [sha256.Size]byte
	set bool
}

// Of returns the digest of b.
func Of(b []byte) Digest { return Digest{sum: sha256.Sum256(b), set: true} }

// FromHash returns the digest that h, a SHA-256 hash, has arrived at.
func FromHash(h hash.Hash) Digest {
	d := Digest{set: true}
	h.Sum(d.sum[:0])
	return d
}

// Parse reads "sha256:<hex>" or the bare 64 hex digits.
func Parse(s string) (Digest, error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(s, prefix))
	if err != nil || len(raw) != sha256.Size {
		return Digest{}, fmt.Errorf("not a sha256 digest: %q", s)
	}
	d := Digest{set: true}
	copy(d.sum[:], raw)
	return d, nil
}

// IsZero reports whether the digest is unknown.
func (d Digest) IsZero() bool { return !d.set }

// Hex is the value as 64 lower-case hex digits, or "" when unknown.
func (d Digest) Hex() string {
	if !d.set {
		return ""
	}
	return hex.EncodeToString(d.sum[:])
}

// Short is the first 12 hex digits, for people.
func (d Digest) Short() string {
	if !d.set {
		return ""
	}
	return d.Hex()[:12]
}

// String is "sha256:<hex>", or "" when unknown.
func (d Digest) String() string {
	if !d.set {
		return ""
	}
	return prefix + d.Hex()
}

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; "" gives the zero value.
func (d *Digest) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*d = Digest{}
		return nil
	}
	v, err := Parse(string(b))
	if err == nil {
		*d = v
	}
	return err
}

// ErrMismatch is what every failed comparison wraps.
var ErrMismatch = errors.New("digest mismatch")

// Check returns an error that wraps ErrMismatch when got is not want.
func Check(want, got Digest) error {
	if want == got {
		return nil
	}
	return fmt.Errorf("%w: want %s, got %s", ErrMismatch, want, got)
}

// Reader passes through what r gives, and turns io.EOF into an error that wraps
// ErrMismatch when everything read does not hash to want.
type Reader struct {
	r    io.Reader
	h    hash.Hash
	want Digest
}

// NewReader returns a reader that verifies r against want.
func NewReader(r io.Reader, want Digest) *Reader {
	return &Reader{r: r, h: sha256.New(), want: want}
}

// Read implements io.Reader.
func (v *Reader) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.h.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if bad := Check(v.want, FromHash(v.h)); bad != nil {
			return n, bad
		}
	}
	return n, err
}

// Writer hashes and counts what passes through it.
type Writer struct {
	w io.Writer
	h hash.Hash
	n int64
}

// NewWriter returns a Writer in front of w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w, h: sha256.New()} }

// Write implements io.Writer.
func (c *Writer) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.h.Write(p[:n])
	c.n += int64(n)
	return n, err
}

// Sum is the digest of all bytes written so far.
func (c *Writer) Sum() Digest { return FromHash(c.h) }

// Size is the number of bytes written so far.
func (c *Writer) Size() int64 { return c.n }
