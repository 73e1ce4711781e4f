// Package ssh reaches a node: it runs commands there as root, reads and writes its
// files, and opens connections from it. One connection is kept and shared; when it
// breaks, the next call makes another. A node must prove who it is by a known host
// key before anything is said to it.
//
// A secret never goes into a command, which every process of the node can read, but
// to the command's standard input.
package ssh

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slipway/slipway/internal/diag"
)

// Options say which node, and as whom.
type Options struct {
	Node    string // its name, for messages
	Address string // host:port
	User    string // who logs in; anybody but root needs sudo without a password

	// HostKeys are the keys that the node may show, in authorized_keys form. Without
	// any, nobody is trusted and nothing is sent.
	HostKeys []string
	// Pinned says that the profile names the keys: then only the profile can change them.
	Pinned bool
	// Login proves who we are.
	Login *Login
	// Authorized are the public keys that the profile lists for User: of many keys in
	// an agent those are tried first, because sshd hangs up after six.
	Authorized []string
	// Redact takes secrets out of what errors say; nil leaves everything.
	Redact func(string) string
}

// Bounds of the connection.
const (
	dialLimit      = 10 * time.Second
	handshakeLimit = 40 * time.Second // an emulated node takes seconds
	aliveEvery     = 10 * time.Second // how often a quiet connection is asked for a sign of life
	alivePatience  = 20 * time.Second // how long the answer may take
)

// Host is one node.
type Host struct {
	o    Options
	turn chan struct{} // holds one token: who has it may change conn
	conn *connection
	shut atomic.Bool

	aliveEvery, alivePatience time.Duration
}

// New makes a Host. Nothing is sent before it is asked for something.
func New(o Options) *Host {
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	if o.Login == nil {
		o.Login = &Login{}
	}
	h := &Host{o: o, turn: make(chan struct{}, 1), aliveEvery: aliveEvery, alivePatience: alivePatience}
	h.turn <- struct{}{}
	return h
}

// Name is the node's name.
func (h *Host) Name() string { return h.o.Node }

// Close ends the connection. The Host cannot be used afterwards.
func (h *Host) Close() error {
	h.shut.Store(true)
	<-h.turn
	defer func() { h.turn <- struct{}{} }()
	if h.conn == nil {
		return nil
	}
	return h.conn.close()
}

// connected returns the living connection, or makes one.
func (h *Host) connected(ctx context.Context) (*connection, error) {
	select {
	case <-h.turn:
	case <-ctx.Done():
		return nil, h.fail(context.Cause(ctx))
	}
	defer func() { h.turn <- struct{}{} }()
	if h.shut.Load() {
		return nil, fmt.Errorf("%s: the connection was closed", h.o.Node)
	}
	if h.conn != nil && h.conn.alive() {
		return h.conn, nil
	}
	conn, err := h.dial(ctx)
	if err != nil {
		return nil, err
	}
	h.conn = conn
	return conn, nil
}

// fail names the node in an error and takes out what must not be read.
func (h *Host) fail(err error) error {
	if err == nil {
		return nil
	}
	return &hostError{node: h.o.Node, err: err, redact: h.o.Redact}
}

// hostError is an error of one node. The hint of what it wraps stays readable.
type hostError struct {
	node   string
	err    error
	redact func(string) string
}

func (e *hostError) Error() string { return e.redact(e.node + ": " + e.err.Error()) }
func (e *hostError) Unwrap() error { return e.err }

// hinted is an error with something to do about it.
func hinted(hint, format string, args ...any) error {
	return diag.WithHint(fmt.Errorf(format, args...), hint)
}
