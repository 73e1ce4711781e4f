package chunk

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// extent is a run of bytes of a sparse file that is not a hole.
type extent struct{ start, end int64 }

// nextData returns the first extent that ends after offset: last, while that is
// still the one, else what lseek(2) says. Behind the last data of the file it is
// empty and starts at size. A file system without SEEK_DATA has no holes.
func nextData(f *os.File, size int64, last extent, offset int64) (extent, error) {
	if last.end > offset || last.start >= size {
		return last, nil
	}
	start, err := f.Seek(offset, unix.SEEK_DATA)
	switch {
	case errors.Is(err, syscall.ENXIO): // no data from here on
		return extent{start: size, end: size}, nil
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOTSUP):
		return extent{start: offset, end: size}, nil
	case err != nil:
		return extent{}, fmt.Errorf("looking for data: %w", err)
	}
	end, err := f.Seek(start, unix.SEEK_HOLE)
	if err != nil {
		return extent{}, fmt.Errorf("looking for holes: %w", err)
	}
	return extent{start: start, end: end}, nil
}

// Holes says which parts of a sparse file hold no data.
type Holes struct {
	file *os.File
	size int64
	data extent
}

// NewHoles returns the holes of a file of size bytes.
func NewHoles(f *os.File, size int64) *Holes { return &Holes{file: f, size: size} }

// Covers reports whether n bytes at offset lie in a hole. Offsets must not
// decrease from call to call.
func (h *Holes) Covers(offset, n int64) (bool, error) {
	var err error
	h.data, err = nextData(h.file, h.size, h.data, offset)
	return err == nil && h.data.start >= offset+n, err
}
