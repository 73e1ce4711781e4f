package main

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/pxed"
	"github.com/slipway/slipway/internal/pxed/client"
)

// Places, when no flag names others.
const (
	defaultState = "/var/lib/slipway/pxed"
	envSocket    = "SLIPWAY_PXED_SOCKET"
	socketName   = "/run/slipway/pxed.sock"
	tokenName    = "token"
)

func defaultSocket() string { return cmp.Or(os.Getenv(envSocket), socketName) }

// connection are the flags that say which pxed is talked to.
type connection struct{ socket, server, tokenFile string }

func (c *connection) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.socket, "socket", defaultSocket(), "unix socket of the pxed to talk to; $"+envSocket+" names another default")
	f.StringVar(&c.server, "server", "", "URL of a pxed on another machine, such as http://192.168.1.5:8080")
	f.StringVar(&c.tokenFile, "token-file", filepath.Join(defaultState, tokenName), "with --server: file with the operator's token")
}

func (c *connection) open() (*client.Client, error) {
	if c.server == "" {
		return client.Socket(c.socket), nil
	}
	token, err := pxed.ReadToken(c.tokenFile)
	if err != nil {
		return nil, err
	}
	return client.Remote(c.server, token)
}
