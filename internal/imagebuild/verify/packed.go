package verify

import (
	"errors"
	"io"
	"os"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/artifact/unpack"
)

// packed gives random access to the raw content of a compressed image. Every
// chunk is checked before it is handed on; the last one is kept.
type packed struct {
	file *os.File
	disk artifact.Disk
	dec  *unpack.Decoder
	have int // the chunk in raw, or -1
	raw  []byte
}

func newPacked(file *os.File, disk artifact.Disk) (*packed, error) {
	dec, err := unpack.NewDecoder(disk)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &packed{file: file, disk: disk, dec: dec, have: -1}, nil
}

// openPacked opens the compressed image of the build.
func (e *examination) openPacked() (*packed, error) {
	f, ok := e.index.One(artifact.RoleDiskZstd)
	if !ok {
		return nil, errors.New("no compressed image")
	}
	file, err := e.root.Open(f.Name)
	if err != nil {
		return nil, err
	}
	return newPacked(file, e.index.Disk)
}

// Close closes the file.
func (p *packed) Close() error {
	p.dec.Close()
	return p.file.Close()
}

// ReadAt implements io.ReaderAt.
func (p *packed) ReadAt(b []byte, offset int64) (int, error) {
	n := 0
	for n < len(b) {
		at := offset + int64(n)
		if at >= p.disk.Size {
			return n, io.EOF
		}
		i := int(at / p.disk.ChunkSize)
		if err := p.load(i); err != nil {
			return n, err
		}
		start, _ := p.disk.Span(i)
		n += copy(b[n:], p.raw[at-start:])
	}
	return n, nil
}

func (p *packed) load(i int) error {
	if p.have == i {
		return nil
	}
	p.have = -1
	c := p.disk.Chunks[i]
	frame := make([]byte, c.Size)
	if _, err := p.file.ReadAt(frame, c.Offset); err != nil {
		return err
	}
	raw, err := p.dec.Decode(i, frame)
	if err != nil {
		return err
	}
	p.raw, p.have = raw, i
	return nil
}
