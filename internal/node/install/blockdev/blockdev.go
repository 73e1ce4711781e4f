// Package blockdev writes and reads disks past the kernel's cache, so that what is
// read back comes from the disk, and so that an image does not push everything
// else out of a small machine's memory.
package blockdev

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Device is an open block device, or a regular file that stands for one.
type Device struct {
	file  *os.File
	size  int64
	block bool
	bufs  sync.Pool
}

// alignment of memory, offsets and lengths that satisfies O_DIRECT on every disk:
// the largest logical sector in the field. Bytes.
const alignment = 4096

// bounce is the size of the aligned memory that data goes through which does not lie
// as the kernel wants it, bytes.
const bounce = 4 << 20

// Open opens a disk for this process alone: the kernel refuses when a partition of
// it is mounted or a member of something (open(2), O_EXCL on block devices).
func Open(path string) (*Device, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EINVAL) { // a file system without O_DIRECT, in tests
		f, err = os.OpenFile(path, os.O_RDWR|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, err
	}
	d := &Device{file: f}
	d.bufs.New = func() any { b := aligned(bounce); return &b }
	if err := d.measure(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return d, nil
}

func (d *Device) measure() error {
	st, err := d.file.Stat()
	if err != nil {
		return err
	}
	d.block = st.Mode()&os.ModeDevice != 0
	d.size, err = d.file.Seek(0, io.SeekEnd)
	return err
}

// aligned returns n bytes that start at a multiple of alignment.
func aligned(n int) []byte {
	b := make([]byte, n+alignment)
	skip := (alignment - int(uintptr(unsafe.Pointer(&b[0]))%alignment)) % alignment
	return b[skip : skip+n : skip+n]
}

// Size is the size of the disk, bytes.
func (d *Device) Size() int64 { return d.size }

// Fd is the file descriptor, for ioctls.
func (d *Device) Fd() uintptr { return d.file.Fd() }

// Close closes the device.
func (d *Device) Close() error { return d.file.Close() }

// fits reports whether the kernel may move memory to the disk as it lies. Large
// blocks of Go's heap do; the copy is for what was cut out of one. O_DIRECT wants
// lengths and offsets of whole sectors as well, and those are whole already.
func fits(p []byte) bool {
	return len(p) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(p)))%alignment == 0
}

// WriteAt implements io.WriterAt.
func (d *Device) WriteAt(p []byte, off int64) (int, error) {
	if fits(p) {
		return d.file.WriteAt(p, off)
	}
	pooled := d.bufs.Get().(*[]byte)
	defer d.bufs.Put(pooled)
	buf := *pooled
	done := 0
	for done < len(p) {
		n := copy(buf, p[done:])
		if _, err := d.file.WriteAt(buf[:n], off+int64(done)); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// ReadAt implements io.ReaderAt.
func (d *Device) ReadAt(p []byte, off int64) (int, error) {
	if fits(p) {
		return d.file.ReadAt(p, off)
	}
	pooled := d.bufs.Get().(*[]byte)
	defer d.bufs.Put(pooled)
	buf := *pooled
	done := 0
	for done < len(p) {
		n, err := d.file.ReadAt(buf[:min(len(buf), len(p)-done)], off+int64(done))
		done += copy(p[done:], buf[:n])
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// Flush waits until the disk has everything on its medium.
func (d *Device) Flush() error {
	if err := d.file.Sync(); err != nil {
		return fmt.Errorf("flushing: %w", err)
	}
	if d.block {
		// Nobody else has written, but somebody may have read before us.
		_ = unix.IoctlSetInt(int(d.file.Fd()), unix.BLKFLSBUF, 0)
	}
	return nil
}

// Zero makes a range zero. The first way unmaps blocks where the disk promises that
// they read as zeros then, which keeps thin disks thin (fallocate(2) on a block
// device); the second leaves the way to the kernel; the last writes zeros.
func (d *Device) Zero(offset, length int64) error {
	err := unix.Fallocate(int(d.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
	if err != nil && d.block {
		err = d.ioctlRange(unix.BLKZEROOUT, offset, length)
	}
	if err != nil {
		err = d.writeZeros(offset, length)
	}
	return err
}

// Discard tells the disk that a range is no longer needed. What it reads as
// afterwards is the disk's affair.
func (d *Device) Discard(offset, length int64) error {
	if !d.block {
		return unix.Fallocate(int(d.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
	}
	return d.ioctlRange(unix.BLKDISCARD, offset, length)
}

func (d *Device) ioctlRange(request uintptr, offset, length int64) error {
	span := [2]uint64{uint64(offset), uint64(length)}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.file.Fd(), request, uintptr(unsafe.Pointer(&span[0])))
	if errno != 0 {
		return errno
	}
	return nil
}

func (d *Device) writeZeros(offset, length int64) error {
	zeros := aligned(int(min(length, bounce)))
	for length > 0 {
		n := min(length, int64(len(zeros)))
		if _, err := d.file.WriteAt(zeros[:n], offset); err != nil {
			return err
		}
		offset, length = offset+n, length-n
	}
	return nil
}
