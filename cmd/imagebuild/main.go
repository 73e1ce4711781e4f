// Command imagebuild turns a profile into a bootable image and one cloud-init
// seed for each node.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
