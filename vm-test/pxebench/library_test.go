package pxebench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	tftp "github.com/pin/tftp/v3"
)

// The variables that make the test program a TFTP server made of Go's library for
// it, in a process of its own like the others: the directory to serve, and where.
const (
	libraryVariable = "SLIPWAY_PXEBENCH_LIBRARY"
	addressVariable = "SLIPWAY_PXEBENCH_ADDRESS"
)

const libraryName = "pin/tftp library"

func (y *yard) library() *server {
	s := y.host(libraryName)
	s.run(y.t, []string{libraryVariable + "=" + y.build, addressVariable + "=" + s.addr.String()}, self(y.t))
	return s
}

func self(t *testing.T) string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func serveLibrary(dir string) {
	s := tftp.NewServer(func(name string, to io.ReaderFrom) error {
		f, err := os.Open(filepath.Join(dir, filepath.Clean("/"+name)))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = to.ReadFrom(f)
		return err
	}, nil)
	if err := s.ListenAndServe(os.Getenv(addressVariable) + ":69"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
