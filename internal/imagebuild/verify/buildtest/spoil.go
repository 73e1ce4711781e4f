package buildtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/hosttool"
)

// Copy copies a build, holes and all, to a directory that does not exist.
func Copy(ctx context.Context, from, to string) error {
	return hosttool.Run(ctx, hosttool.Cmd{Name: "cp", Args: []string{"-a", "--sparse=always", from, to}})
}

// Flip changes one bit of a file of the build, also one in a hole. A negative
// offset counts from the end of the file.
func Flip(dir, name string, at int64) error {
	f, err := os.OpenFile(filepath.Join(dir, filepath.FromSlash(name)), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if st, err := f.Stat(); err == nil && at < 0 {
		at += st.Size()
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	b[0] ^= 1
	if err == nil {
		_, err = f.WriteAt(b[:], at)
	}
	return errors.Join(err, f.Close())
}
