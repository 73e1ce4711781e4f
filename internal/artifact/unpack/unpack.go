// Package unpack reads the compressed disk image of a build chunk by chunk, and
// hands on nothing that it has not checked against the index: first the frame as
// it arrived, so that a decompressor never sees what nobody signed, and then what
// came out of it.
package unpack

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
)

// Decoder turns frames into chunks. It keeps one frame's worth of memory (twice
// the chunk size at most) and is for one goroutine.
type Decoder struct {
	disk artifact.Disk
	zstd *zstd.Decoder
	raw  []byte
}

// NewDecoder returns a decoder for the frames of a disk whose index has passed
// artifact.Decode. Close it.
func NewDecoder(disk artifact.Disk) (*Decoder, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(uint64(max(disk.ChunkSize, 1<<20))))
	if err != nil {
		return nil, fmt.Errorf("preparing zstd: %w", err)
	}
	return &Decoder{disk: disk, zstd: dec}, nil
}

// Close frees what the decoder holds.
func (d *Decoder) Close() { d.zstd.Close() }

// Decode checks and decompresses the frame of chunk i, holes too. What it returns
// is valid until the next call.
func (d *Decoder) Decode(i int, frame []byte) ([]byte, error) {
	c := d.disk.Chunks[i]
	if err := digest.Check(c.Packed, digest.Of(frame)); err != nil {
		return nil, d.wrap(i, fmt.Errorf("compressed: %w", err))
	}
	_, length := d.disk.Span(i)
	if int64(cap(d.raw)) < length {
		d.raw = make([]byte, 0, d.disk.ChunkSize)
	}
	raw, err := d.zstd.DecodeAll(frame, d.raw[:0])
	if err != nil {
		return nil, d.wrap(i, err)
	}
	d.raw = raw
	switch {
	case int64(len(raw)) != length:
		return nil, d.wrap(i, fmt.Errorf("frame holds %d bytes, want %d", len(raw), length))
	case c.Hole && !Zero(raw):
		return nil, d.wrap(i, errors.New("a hole that is not all zeros"))
	case !c.Hole:
		if err := digest.Check(c.Raw, digest.Of(raw)); err != nil {
			return nil, d.wrap(i, err)
		}
	}
	return raw, nil
}

func (d *Decoder) wrap(i int, err error) error {
	offset, length := d.disk.Span(i)
	return fmt.Errorf("chunk %d (bytes %d to %d, %s): %w", i, offset, offset+length-1, d.disk.At(offset), err)
}

// Zero reports whether b is all zeros.
func Zero(b []byte) bool {
	var zeros [4096]byte
	for len(b) > 0 {
		n := min(len(b), len(zeros))
		if string(b[:n]) != string(zeros[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// Chunk is a piece of the raw image that has been checked.
type Chunk struct {
	Index  int
	Offset int64  // in the raw image, bytes
	Length int64  // bytes
	Data   []byte // nil for a hole, which is all zeros; valid until the next call
}

// Reader reads all chunks in order from a stream, such as the compressed file or
// the body of an HTTP answer.
type Reader struct {
	src   io.Reader
	dec   *Decoder
	frame []byte
	next  int
}

// NewReader returns a reader of the chunks of disk. Close it.
func NewReader(src io.Reader, disk artifact.Disk) (*Reader, error) {
	dec, err := NewDecoder(disk)
	if err != nil {
		return nil, err
	}
	return &Reader{src: src, dec: dec}, nil
}

// Close frees what the reader holds; it does not close the source.
func (r *Reader) Close() { r.dec.Close() }

// Next returns the next chunk, or io.EOF after the last one when the source ends
// there as well.
func (r *Reader) Next() (Chunk, error) {
	disk := r.dec.disk
	if r.next == len(disk.Chunks) {
		return Chunk{}, r.end()
	}
	i := r.next
	c := disk.Chunks[i]
	if int64(cap(r.frame)) < c.Size {
		r.frame = make([]byte, max(c.Size, disk.ChunkSize))
	}
	frame := r.frame[:c.Size]
	if _, err := io.ReadFull(r.src, frame); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Chunk{}, r.dec.wrap(i, fmt.Errorf("reading: %w", err))
	}
	out := Chunk{Index: i}
	out.Offset, out.Length = disk.Span(i)
	if c.Hole {
		// The frame was signed as a hole: what it would decompress to is known.
		if err := digest.Check(c.Packed, digest.Of(frame)); err != nil {
			return Chunk{}, r.dec.wrap(i, fmt.Errorf("compressed: %w", err))
		}
		r.next++
		return out, nil
	}
	raw, err := r.dec.Decode(i, frame)
	if err != nil {
		return Chunk{}, err
	}
	r.next++
	out.Data = raw
	return out, nil
}

func (r *Reader) end() error {
	var one [1]byte
	n, err := io.ReadFull(r.src, one[:])
	switch {
	case n > 0:
		return errors.New("more data after the last chunk")
	case errors.Is(err, io.EOF):
		return io.EOF
	default:
		return fmt.Errorf("reading the end of the image: %w", err)
	}
}
