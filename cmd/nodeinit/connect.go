package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/exit"
)

// connectLimit bounds connecting; once connected there is no limit.
const connectLimit = 20 * time.Second

func newConnect() *cobra.Command {
	var greet bool
	cmd := &cobra.Command{
		Use:   "connect unix:PATH | tcp:HOST:PORT",
		Short: "join standard input and output to a socket of this node",
		Long: `connect opens a socket and copies standard input to it and what comes from it to
standard output, until both have ended. bootstrap reaches the Cilium agent's socket
through it, which only root may open.`,
		Example: "  slipway-node connect unix:/var/run/cilium/cilium.sock",
		Args:    cli.Args(cobra.ExactArgs(1)),
	}
	cmd.Flags().BoolVar(&greet, "greet", false, `print the line "connected" first`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		network, address, ok := strings.Cut(args[0], ":")
		if !ok || network != "unix" && network != "tcp" {
			return exit.With(exit.Usage, fmt.Errorf("%q is neither unix:PATH nor tcp:HOST:PORT", args[0]))
		}
		conn, err := (&net.Dialer{Timeout: connectLimit}).DialContext(cmd.Context(), network, address)
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		defer conn.Close()
		if greet {
			if _, err := io.WriteString(cmd.OutOrStdout(), "connected\n"); err != nil {
				return err
			}
		}
		return join(conn, cmd.InOrStdin(), cmd.OutOrStdout())
	}
	return cmd
}

// join copies both ways until the socket has said everything. The end of the input
// is passed on, so that a request that ends with it gets its answer.
func join(conn net.Conn, in io.Reader, out io.Writer) error {
	go func() {
		_, err := io.Copy(conn, in)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
			half.CloseWrite()
			return
		}
		conn.Close()
	}()
	_, err := io.Copy(out, conn)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
