// Command nodeinit is the first program of the initramfs: it finds, verifies and
// starts the system in a slot. Inside the started system the same program is
// slipway-node, which explains the node.
package main

import (
	"os"

	"github.com/slipway/slipway/internal/node"
)

func main() {
	if os.Getpid() == 1 {
		node.Boot() // does not return
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
