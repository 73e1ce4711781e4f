// Command bootstrap makes booted nodes a cluster that Flux owns, and rebuilds a lost
// node.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
