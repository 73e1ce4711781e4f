package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/slipway/slipway/internal/diag"
)

// runLimit bounds a command whose caller sets no deadline.
const runLimit = 10 * time.Minute

// grace is how much longer than we wait a command may run on the node before it is
// ended there: it must not live on when we or the connection are gone.
const grace = 10 * time.Second

// timedOut is the exit code of timeout(1) for a command that it had to end.
const timedOut = 124

// maxOutput bounds what a command may print, bytes.
const maxOutput = 64 << 20

// ExitError is a command that ran and failed.
type ExitError struct {
	Command string // its beginning
	Code    int
	Said    string // the end of its standard error
}

func (e *ExitError) Error() string {
	if e.Said == "" {
		return fmt.Sprintf("%s: exit code %d", e.Command, e.Code)
	}
	return fmt.Sprintf("%s: exit code %d: %s", e.Command, e.Code, e.Said)
}

// ExitCode is the code, for callers that know no more of this package.
func (e *ExitError) ExitCode() int { return e.Code }

// Run runs a command in a POSIX shell as root and returns what it printed. stdin is
// the place for secrets: the command itself can be seen by everybody on the node. A
// command that fails is an *ExitError.
func (h *Host) Run(ctx context.Context, command string, stdin []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	session, err := h.session(ctx)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	out, said := &capped{limit: maxOutput}, &tail{limit: 4 << 10}
	session.Stdout, session.Stderr = out, said
	if stdin != nil {
		session.Stdin = bytes.NewReader(stdin)
	}
	if err := session.Start(h.asRoot(ctx, command)); err != nil {
		return nil, h.fail(lost(brief(command), err))
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		session.Signal(ssh.SIGTERM) // as far as sshd may; else the limit on the node ends it
		session.Close()
		return nil, h.fail(fmt.Errorf("%s: %w", brief(command), context.Cause(ctx)))
	}
	if err == nil && out.over {
		err = fmt.Errorf("%s: more than %d MiB of output", brief(command), maxOutput>>20)
	}
	return out.Bytes(), h.fail(h.explain(command, err, said.String()))
}

// session opens a channel for one command. A connection that turns out to be dead
// is replaced once; nothing has been started on the node by then.
func (h *Host) session(ctx context.Context) (*ssh.Session, error) {
	for again := true; ; again = false {
		c, err := h.connected(ctx)
		if err != nil {
			return nil, err
		}
		session, err := newSession(ctx, c.client)
		if err == nil {
			return session, nil
		}
		var full *ssh.OpenChannelError
		if errors.As(err, &full) || !again || ctx.Err() != nil {
			return nil, h.fail(fmt.Errorf("starting a command: %w", err))
		}
		c.close()
	}
}

// newSession is client.NewSession, which knows no context.
func newSession(ctx context.Context, client *ssh.Client) (*ssh.Session, error) {
	type result struct {
		session *ssh.Session
		err     error
	}
	made := make(chan result, 1)
	go func() {
		s, err := client.NewSession()
		made <- result{s, err}
	}()
	select {
	case r := <-made:
		return r.session, r.err
	case <-ctx.Done():
		go func() {
			if r := <-made; r.err == nil {
				r.session.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// asRoot is the command as the user's login shell gets it. LC_ALL makes sudo speak
// the language in which sudoRefused reads it.
func (h *Host) asRoot(ctx context.Context, command string) string {
	limit := ""
	if until, ok := ctx.Deadline(); ok {
		limit = fmt.Sprintf("timeout -k 10 %d ", int((time.Until(until)+grace)/time.Second)+1)
	}
	return h.sudo() + limit + "/bin/sh -c " + Quote(command)
}

func (h *Host) sudo() string {
	if h.o.User == "root" {
		return ""
	}
	return "LC_ALL=C sudo -n -- "
}

// explain turns the end of a command into an error that says what to do.
func (h *Host) explain(command string, err error, said string) error {
	var ended *ssh.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &ended):
		return lost(brief(command), err)
	case h.o.User != "root" && sudoRefused(said):
		return diag.WithHint(fmt.Errorf("%s may not become root: %s", h.o.User, said),
			fmt.Sprintf("set sudo: true for %s in access.users of the profile and write the seed again, or log in as a user who has it", h.o.User))
	}
	if name := ended.Signal(); name != "" {
		said = strings.TrimSpace("ended by signal " + name + " " + said)
	}
	if ended.ExitStatus() == timedOut && said == "" {
		said = "it did not end in time, and was ended"
	}
	said, hint := split(said)
	err = &ExitError{Command: brief(command), Code: ended.ExitStatus(), Said: said}
	if hint != "" {
		return diag.WithHint(err, hint)
	}
	return err
}

// split takes apart what a program of ours says when it fails: the error, and what to
// do about it.
func split(said string) (text, hint string) {
	text, hint, _ = strings.Cut(said, "\nhint: ")
	if at := strings.LastIndex(text, "error: "); hint != "" && at >= 0 {
		text = text[at+len("error: "):]
	}
	return text, hint
}

// sudoRefused reports whether it is sudo that says no, and not the command. A
// warning of sudo's, such as a host name that does not resolve, is no refusal.
func sudoRefused(said string) bool {
	for _, no := range []string{
		"sudo: a password is required", "sudo: a terminal is required", "sudo: no tty present",
		"is not in the sudoers file", "is not allowed to execute", "sudo: command not found", "sudo: not found", "sudo: effective uid is not 0",
	} {
		if strings.Contains(said, no) {
			return true
		}
	}
	return false
}

func lost(command string, err error) error {
	var missing *ssh.ExitMissingError
	if errors.As(err, &missing) {
		err = errors.New("the connection was lost, and how the command ended is not known")
	}
	return hinted("run this again: what is done is seen and not done twice", "%s: %w", command, err)
}

// Quote makes a text one word of a POSIX shell.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// brief is a command as an error names it.
func brief(command string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(command), "\n")
	if len(first) > 80 {
		return first[:80] + "…"
	}
	if rest != "" {
		return first + " …"
	}
	return first
}
