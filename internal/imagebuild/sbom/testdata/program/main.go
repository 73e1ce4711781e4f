// Command program is a Go program with dependencies, for the tests of sbom.
package main

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

func main() { fmt.Println(zstd.SpeedFastest, unix.SEEK_DATA) }
