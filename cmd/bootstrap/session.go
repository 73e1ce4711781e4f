package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
)

// login are the flags that say how nodes are reached.
type login struct {
	keys      []string
	addresses []string
}

func (l *login) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&l.keys, "ssh-key", nil, "private key to log in to the nodes with (default: the agent and ~/.ssh/id_*)")
	cmd.Flags().StringArrayVar(&l.addresses, "address", nil, "NODE=HOST[:PORT] of a node that is not reached at the profile's address; may be repeated")
}

func (l *login) parse(cmd *cobra.Command) (bootstrap.Login, error) {
	out := bootstrap.Login{Files: l.keys, Addresses: map[string]string{}}
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
	session, err := bootstrap.Start(s, how)
	if err != nil {
		return err
	}
	return clean(session, errors.Join(work(session), session.Close()))
}

func known(s bootstrap.Settings, node string) bool {
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
