// Command nodeinit is the first program of the initramfs: it finds, verifies and
// starts the system in a slot; or, started from the network or a stick, it images
// the machine. Inside the started system the same program is
// slipway-node, which explains the node, and systemd's generator of the mounts of its
// data disks.
package main

import (
	"os"

	"github.com/slipway/slipway/internal/node"
	"github.com/slipway/slipway/internal/node/installer"
)

func main() {
	if os.Getpid() == 1 {
		installer.Main() // does not return when the machine was started to be imaged
		node.Boot()      // does not return
	}
	if isGenerator(os.Args[0]) {
		os.Exit(generate(os.Args[1:], os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
