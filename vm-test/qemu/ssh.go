package qemu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Shell is a connection to a guest.
type Shell struct {
	HostKey string // the guest's host key, as in a known_hosts file

	client *ssh.Client
}

// handshakeDeadline bounds one attempt. Until the guest's network is up, QEMU
// accepts the connection and is silent; with it up, a handshake under TCG takes
// a few seconds.
const handshakeDeadline = 20 * time.Second

// retryPause is the pause between two attempts.
const retryPause = 500 * time.Millisecond

// SSH logs in through the first forwarded port, again and again until the limit
// is over. privateKey is in OpenSSH's format.
func (v *VM) SSH(ctx context.Context, user string, privateKey []byte, limit time.Duration) (*Shell, error) {
	if len(v.ssh) == 0 {
		return nil, errors.New("no card of this machine has a forwarded SSH port")
	}
	signer, err := ssh.ParsePrivateKey(privateKey)
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		s, err := dial(ctx, v.ssh[0], user, signer)
		if err == nil {
			return s, nil
		}
		select {
		case <-time.After(retryPause):
		case <-v.exited:
			return nil, fmt.Errorf("logging in as %s: the machine has ended; last: %w", user, err)
		case <-ctx.Done():
			return nil, fmt.Errorf("logging in as %s for %s: %w; the console ends in:\n%s", user, limit, err, v.Serial[0].Tail())
		}
	}
}

func dial(ctx context.Context, addr, user string, signer ssh.Signer) (*Shell, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeDeadline)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		conn.Close()
		return nil, err
	}
	s := &Shell{}
	// The address is a port that QEMU chose on this host: there is nobody in
	// between, and no key to expect. Tests compare the keys of machines.
	cc, chans, reqs, err := ssh.NewClientConn(conn, addr, &ssh.ClientConfig{
		User: user,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			s.HostKey = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
			return nil
		},
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	s.client = ssh.NewClient(cc, chans, reqs)
	return s, conn.SetDeadline(time.Time{})
}

// Run runs a command in the user's shell and returns what it wrote to its
// standard output. A command that fails is an error with what it said; errors.As
// finds the *ssh.ExitError.
func (s *Shell) Run(ctx context.Context, command string) (string, error) {
	return s.RunInput(ctx, command, nil)
}

// RunInput is Run with input for the command.
func (s *Shell) RunInput(ctx context.Context, command string, input []byte) (string, error) {
	session, err := s.client.NewSession()
	if err != nil {
		return "", fmt.Errorf("running %q: %w", command, err)
	}
	defer session.Close()
	var out, said bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = bytes.NewReader(input), &out, &said
	done := make(chan error, 1)
	go func() { done <- session.Run(command) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		s.client.Close()
		<-done
		err = context.Cause(ctx)
	}
	if err != nil {
		return out.String(), fmt.Errorf("running %q: %w\n%s%s", command, err, out.String(), said.String())
	}
	return out.String(), nil
}

// Put writes a file as root; the directory must exist.
func (s *Shell) Put(ctx context.Context, path string, content []byte) error {
	_, err := s.RunInput(ctx, "sudo tee "+quote(path)+" >/dev/null", content)
	return err
}

// Close ends the connection. The guest may be gone already.
func (s *Shell) Close() { s.client.Close() }

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
