package usbtest

import (
	"errors"
	"os"

	"github.com/slipway/slipway/internal/imagebuild/usb"
)

// File is a regular file in the place of a device. It does not grow, and it can
// be made to fail like a stick does.
type File struct {
	*os.File
	size   int64
	Writes int                 // so far
	Before func(n int) error   // called before write n, counted from 1
	After  func(f *File) error // called after each Sync
}

// Open opens path as a target.
func Open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{File: f, size: st.Size()}, nil
}

var _ usb.Target = (*File)(nil)

// Size implements usb.Target.
func (f *File) Size() int64 { return f.size }

// WriteAt implements usb.Target. Like a device opened with O_DIRECT it wants whole
// sectors.
func (f *File) WriteAt(p []byte, offset int64) (int, error) {
	f.Writes++
	if f.Before != nil {
		if err := f.Before(f.Writes); err != nil {
			return 0, err
		}
	}
	switch {
	case len(p)%512 != 0 || offset%512 != 0 || len(p) == 0:
		return 0, errors.New("not whole sectors")
	case offset+int64(len(p)) > f.size:
		return 0, errors.New("beyond the end of the device")
	}
	return f.File.WriteAt(p, offset)
}

// Sync implements usb.Target.
func (f *File) Sync() error {
	if f.After != nil {
		return f.After(f)
	}
	return nil
}
