package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/slipway/slipway/internal/bootstrap/ssh/hostkey"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

// connection is one connection to a node.
type connection struct {
	client *ssh.Client
	gone   chan struct{} // closed when the connection has ended
}

func (c *connection) alive() bool {
	select {
	case <-c.gone:
		return false
	default:
		return true
	}
}

func (c *connection) close() error {
	err := c.client.Close()
	<-c.gone
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// watch notices the end of the connection, also an end that nobody tells us of: a
// node without power sends nothing.
func (c *connection) watch(every, patience time.Duration) {
	go func() {
		c.client.Wait()
		close(c.gone)
	}()
	go func() {
		for c.pause(every) && c.answers(patience) {
		}
		c.client.Close()
	}()
}

// pause waits, and reports whether the connection is still there.
func (c *connection) pause(d time.Duration) bool {
	select {
	case <-c.gone:
		return false
	case <-time.After(d):
		return true
	}
}

func (c *connection) answers(patience time.Duration) bool {
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		return err == nil
	case <-time.After(patience):
		return false
	}
}

func (h *Host) dial(ctx context.Context) (*connection, error) {
	keys, err := hostkey.Parse(h.o.HostKeys)
	if err != nil {
		return nil, h.fail(err)
	}
	if len(keys) == 0 {
		return nil, h.fail(h.unknown())
	}
	auth, err := h.o.Login.methods(ctx, h.o.Authorized)
	if err != nil {
		return nil, h.fail(err)
	}
	defer auth.close()
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", h.o.Address)
	if err != nil {
		return nil, h.fail(silent(h.o.Address, err))
	}
	// The handshake knows no context; closing the connection under it ends it.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	cc, chans, reqs, err := ssh.NewClientConn(conn, h.o.Address, &ssh.ClientConfig{
		User:              h.o.User,
		Auth:              auth.methods,
		HostKeyAlgorithms: algorithms(keys),
		HostKeyCallback:   func(_ string, _ net.Addr, key ssh.PublicKey) error { return h.recognise(keys, key) },
	})
	if !stop() || err != nil {
		conn.Close()
		return nil, h.fail(h.refused(ctx, err, auth))
	}
	c := &connection{client: ssh.NewClient(cc, chans, reqs), gone: make(chan struct{})}
	c.watch(h.aliveEvery, h.alivePatience)
	return c, nil
}

func (h *Host) unknown() error {
	return exit.With(exit.Refused, hinted(fmt.Sprintf("look at the fingerprint on its console, then: bootstrap trust %s", h.o.Node),
		"its host key is not known: no install has reported it, the profile pins none, and nobody trusted one by hand"))
}

// algorithms are those that the known keys can answer. Others must not be asked
// for: a node shows the key that was asked for, and that one would be unknown.
func algorithms(keys []ssh.PublicKey) []string {
	var out []string
	for _, k := range keys {
		kinds := []string{k.Type()}
		if k.Type() == ssh.KeyAlgoRSA {
			kinds = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256} // RFC 8332
		}
		for _, kind := range kinds {
			if !slices.Contains(out, kind) {
				out = append(out, kind)
			}
		}
	}
	return out
}

// errOtherKey marks a node that shows a key which is not its own.
var errOtherKey = errors.New("another host key")

func (h *Host) recognise(known []ssh.PublicKey, shown ssh.PublicKey) error {
	var prints []string
	for _, k := range known {
		if string(k.Marshal()) == string(shown.Marshal()) {
			return nil
		}
		prints = append(prints, hostkey.Show(k))
	}
	hint := fmt.Sprintf("if it was reinstalled, compare the fingerprint with its console, then: bootstrap trust %s --replace", h.o.Node)
	if h.o.Pinned {
		hint = "if it was reinstalled, compare the fingerprint with its console, and put the new key into hostKeys of the profile: it pins the old one"
	}
	return exit.With(exit.Refused, hinted(hint,
		"who answers at %s shows %w, %s; known is %s", h.o.Address, errOtherKey, hostkey.Show(shown), strings.Join(prints, " or ")))
}

// silent says why nobody answers.
func silent(address string, err error) error {
	var timeout net.Error
	what := "does not answer"
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		what = "answers, but not with SSH: the connection was refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		what = "cannot be reached from here"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		return hinted("is the address right?", "reaching %s: %w", address, err)
	}
	return diag.WithHint(fmt.Errorf("%s %s (%w)", address, what, err), "is it switched on? its console says what it waits for, and so does: slipway-node ready")
}

// refused says why the node and we did not come to terms.
func (h *Host) refused(ctx context.Context, err error, auth *offer) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return hinted("is it overloaded? try again", "%s did not finish the SSH handshake within %s", h.o.Address, handshakeLimit)
	case errors.Is(err, errOtherKey):
		return err
	case strings.Contains(err.Error(), "unable to authenticate"), strings.Contains(err.Error(), "Too many authentication failures"):
		return hinted(auth.advice(h.o.User), "%s is not let in as %s with %s", h.o.Address, h.o.User, auth)
	}
	return hinted("is it an SSH server of a node that answers there?", "talking to %s: %w", h.o.Address, err)
}
