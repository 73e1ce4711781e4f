package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap"
	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/pxed"
	"github.com/slipway/slipway/internal/pxed/client"
)

// login are the flags that say how nodes are reached.
type login struct {
	keys      []string
	addresses []string
	noTime    bool

	socket, server, tokenFile, ledger string
}

func (l *login) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&l.keys, "ssh-key", nil, "private key to log in to the nodes with (default: the agent and ~/.ssh/id_*)")
	cmd.Flags().StringArrayVar(&l.addresses, "address", nil, "NODE=HOST[:PORT] of a node that is not reached at the profile's address; may be repeated")
	cmd.Flags().BoolVar(&l.noTime, "without-time-server", false, "accept clocks that no time server keeps: on a network that has none")
	cmd.Flags().StringVar(&l.socket, "socket", cmp.Or(os.Getenv(envSocket), socketName), "unix socket of the pxed that has the ledger; without one the ledger is opened here")
	cmd.Flags().StringVar(&l.server, "server", "", "URL of a pxed on another machine that has the ledger")
	cmd.Flags().StringVar(&l.tokenFile, "token-file", "/var/lib/slipway/pxed/token", "with --server: file with the operator's token")
	cmd.Flags().StringVar(&l.ledger, "ledger", "", "directory of the ledger when no pxed has it (default in the state directory)")
}

// Where pxed listens for its operator, when no flag says otherwise.
const (
	envSocket  = "SLIPWAY_PXED_SOCKET"
	socketName = "/run/slipway/pxed.sock"
)

// record says where the ledger is.
func (l *login) record() (bootstrap.Record, error) {
	r := bootstrap.Record{Dir: l.ledger}
	if l.server == "" {
		r.Pxed = client.Socket(l.socket)
		return r, nil
	}
	token, err := pxed.ReadToken(l.tokenFile)
	if err != nil {
		return r, err
	}
	r.Required = true
	r.Pxed, err = client.Remote(l.server, token)
	return r, err
}

func (l *login) parse(cmd *cobra.Command) (bootstrap.Login, error) {
	out := bootstrap.Login{Files: l.keys, Addresses: map[string]string{}, WithoutTimeServer: l.noTime}
	for _, pair := range l.addresses {
		node, host, ok := strings.Cut(pair, "=")
		if !ok || node == "" || host == "" {
			return out, cli.UsageError(cmd, fmt.Errorf("--address %s is not NODE=HOST", pair))
		}
		out.Addresses[node] = host
	}
	return out, nil
}

// withSession makes the drivers for a command and ends them after it.
func withSession(cmd *cobra.Command, c *common, l *login, work func(*bootstrap.Session) error) error {
	s, err := c.settings()
	if err != nil {
		return err
	}
	how, err := l.parse(cmd)
	if err != nil {
		return err
	}
	for node := range how.Addresses {
		if !known(s, node) {
			return cli.UsageError(cmd, fmt.Errorf("the profile has no node %s", node))
		}
	}
	where, err := l.record()
	if err != nil {
		return err
	}
	session, err := bootstrap.Start(s, how, where)
	if err != nil {
		return err
	}
	return clean(session, errors.Join(work(session), session.Close()))
}

func known(s material.Settings, node string) bool {
	for _, n := range s.Cluster.Nodes {
		if n.Name == node {
			return true
		}
	}
	return false
}

// clean takes what secrets an error of somebody else's may hold out of it.
func clean(s *bootstrap.Session, err error) error {
	if err == nil {
		return nil
	}
	text := s.Redactor.Text(err.Error())
	if text == err.Error() {
		return err
	}
	return diag.WithHint(&cleaned{err, text}, s.Redactor.Text(diag.HintOf(err)))
}

type cleaned struct {
	error
	text string
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.error }
