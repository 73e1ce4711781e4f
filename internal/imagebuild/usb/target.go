package usb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
)

// Target is a device, or a file in its place, that is being written. Offsets and
// lengths are multiples of the sector size.
type Target interface {
	io.ReaderAt // past all caches
	io.WriterAt
	Sync() error
	Size() int64
	Close() error
}

// open opens the device of d for writing and nobody else's: exclusively, which
// fails while anything has it mounted or claimed, in whatever namespace.
func (h Host) open(d Device) (Target, error) {
	if h.Open != nil {
		return h.Open(d)
	}
	return OpenDevice(d)
}

// OpenDevice opens a device for writing. It decides nothing: that is Check's.
func OpenDevice(d Device) (Target, error) {
	f, err := os.OpenFile(d.Path, os.O_RDWR|syscall.O_EXCL|syscall.O_DIRECT|syscall.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, syscall.EBUSY):
		return nil, diag.WithHint(fmt.Errorf("%s is in use", d.Path), "unmount it; lsof "+d.Path+"* shows who has it open")
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return nil, diag.WithHint(fmt.Errorf("no permission to write %s", d.Path), "run the command with sudo, and name the trusted key with --key")
	case err != nil:
		return nil, err
	}
	t, err := newDirect(f, d)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// direct reads and writes with O_DIRECT: nothing of what it reads back comes from
// memory. Such transfers need memory at the start of a page.
type direct struct {
	f      *os.File
	size   int64
	bounce []byte // mmapped, one transfer
}

// transfer is how much goes to the device at once, bytes: large enough for the
// erase blocks of a stick.
const transfer = 4 << 20

// newDirect checks that f is still the device that was looked at: a stick may
// have been pulled and another plugged in.
func newDirect(f *os.File, d Device) (*direct, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, fmt.Errorf("looking at %s: %w", d.Path, err)
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	if st.Mode&unix.S_IFMT != unix.S_IFBLK || number != d.Number {
		return nil, fmt.Errorf("%s is not the block device %s any more", d.Path, d.Number)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("asking for the size of %s: %w", d.Path, err)
	}
	if size != d.Size {
		return nil, fmt.Errorf("%s has %d bytes now, and had %d before", d.Path, size, d.Size)
	}
	bounce, err := unix.Mmap(-1, 0, transfer, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for transfers: %w", err)
	}
	return &direct{f: f, size: size, bounce: bounce}, nil
}

func (t *direct) Size() int64 { return t.size }

// Sync asks the device to empty its own cache.
func (t *direct) Sync() error { return t.f.Sync() }

// Close makes the kernel read the new partition table; a kernel that cannot now
// does it when the stick is plugged in again.
func (t *direct) Close() error {
	_ = unix.IoctlSetInt(int(t.f.Fd()), unix.BLKRRPART, 0)
	return errors.Join(unix.Munmap(t.bounce), t.f.Close())
}

func (t *direct) WriteAt(p []byte, offset int64) (int, error) {
	return t.pieces(p, offset, func(piece []byte, at int64) (int, error) {
		copy(t.bounce, piece)
		return t.f.WriteAt(t.bounce[:len(piece)], at)
	})
}

func (t *direct) ReadAt(p []byte, offset int64) (int, error) {
	return t.pieces(p, offset, func(piece []byte, at int64) (int, error) {
		n, err := t.f.ReadAt(t.bounce[:len(piece)], at)
		copy(piece, t.bounce[:n])
		return n, err
	})
}

func (t *direct) pieces(p []byte, offset int64, do func([]byte, int64) (int, error)) (int, error) {
	done := 0
	for done < len(p) {
		piece := p[done:min(done+transfer, len(p))]
		n, err := do(piece, offset+int64(done))
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
