// Package client talks to a running pxed: over its unix socket, or over HTTP with
// the operator's token. It is what pxed's own commands and other programs use.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/desk"
)

// Client is one pxed to talk to.
type Client struct {
	http  *http.Client
	base  string
	token string
	where string // for messages
}

// patience bounds one question, but for events, which have no end.
const patience = 30 * time.Second

// notPxed is the hint for an answer that no pxed gives.
const notPxed = "is it a pxed that answers there, and nothing in between?"

// maxAnswer bounds an answer, bytes.
const maxAnswer = 64 << 20

// Socket talks to the pxed that listens on a unix socket.
func Socket(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial}}, base: "http://pxed", where: path}
}

// Remote talks to the pxed at a URL, such as http://192.168.1.5:8080.
func Remote(server, token string) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("%q is no URL of a pxed", server), "such as http://192.168.1.5:8080"))
	}
	return &Client{http: &http.Client{}, base: strings.TrimRight(server, "/"), token: token, where: server}, nil
}

// Refused is an answer that refuses. Its hint is found by diag.HintOf.
type Refused struct {
	Status int
	Code   string
	Reason string
}

// Error is the reason.
func (r *Refused) Error() string { return r.Reason }

// Machines lists all machines.
func (c *Client) Machines(ctx context.Context) ([]desk.Machine, error) {
	var out struct {
		Machines []desk.Machine `json:"machines"`
	}
	err := c.ask(ctx, http.MethodGet, "/api/v1/machines", nil, &out)
	return out.Machines, err
}

// Machine is one machine, by node, key, MAC address or serial number.
func (c *Client) Machine(ctx context.Context, name string) (desk.Machine, error) {
	var m desk.Machine
	return m, c.ask(ctx, http.MethodGet, "/api/v1/machines/"+url.PathEscape(name), nil, &m)
}

// Arm lets the machine of a node be imaged once.
func (c *Client) Arm(ctx context.Context, node string, o desk.Order) (desk.Machine, error) {
	return c.onNode(ctx, node, "arm", o)
}

// Rearm arms a node again as it was armed last.
func (c *Client) Rearm(ctx context.Context, node string) (desk.Machine, error) {
	return c.onNode(ctx, node, "rearm", nil)
}

// Disarm takes the right to be imaged back.
func (c *Client) Disarm(ctx context.Context, node string) (desk.Machine, error) {
	return c.onNode(ctx, node, "disarm", nil)
}

func (c *Client) onNode(ctx context.Context, node, act string, body any) (desk.Machine, error) {
	var m desk.Machine
	return m, c.ask(ctx, http.MethodPost, "/api/v1/nodes/"+url.PathEscape(node)+"/"+act, body, &m)
}

// Wake sends Wake-on-LAN packets to a node's machine; it gives the addresses.
func (c *Client) Wake(ctx context.Context, node string) ([]string, error) {
	var out struct {
		Sent []string `json:"sent"`
	}
	return out.Sent, c.ask(ctx, http.MethodPost, "/api/v1/nodes/"+url.PathEscape(node)+"/wake", nil, &out)
}

// Bind asks whether a machine is a node, and why not.
func (c *Client) Bind(ctx context.Context, machine, node string) (desk.Machine, error) {
	var m desk.Machine
	body := map[string]string{"node": node}
	return m, c.ask(ctx, http.MethodPost, "/api/v1/machines/"+url.PathEscape(machine)+"/bind", body, &m)
}

// Forget drops the record of a machine that is gone.
func (c *Client) Forget(ctx context.Context, machine string) error {
	var none struct{}
	return c.ask(ctx, http.MethodDelete, "/api/v1/machines/"+url.PathEscape(machine), nil, &none)
}

// Status tells what is served.
func (c *Client) Status(ctx context.Context) (desk.Status, error) {
	var s desk.Status
	return s, c.ask(ctx, http.MethodGet, "/api/v1/status", nil, &s)
}

// Members lists those that hold the ledger.
func (c *Client) Members(ctx context.Context) ([]desk.Member, error) {
	return c.members(ctx, http.MethodGet, "/api/v1/members")
}

// RemoveMember takes a dead member out of the ledger; it gives those that are left.
func (c *Client) RemoveMember(ctx context.Context, address string) ([]desk.Member, error) {
	return c.members(ctx, http.MethodDelete, "/api/v1/members/"+url.PathEscape(address))
}

func (c *Client) members(ctx context.Context, method, path string) ([]desk.Member, error) {
	var out struct {
		Members []desk.Member `json:"members"`
	}
	err := c.ask(ctx, method, path, nil, &out)
	return out.Members, err
}

// Events are those after a cursor; -1 gives none, only the cursor to go on with.
func (c *Client) Events(ctx context.Context, after int64) ([]desk.Event, int64, error) {
	var out struct {
		Events []desk.Event `json:"events"`
		Next   int64        `json:"next"`
	}
	err := c.ask(ctx, http.MethodGet, "/api/v1/events?after="+strconv.FormatInt(after, 10), nil, &out)
	return out.Events, out.Next, err
}

// Follow gives events after a cursor as they happen, until ctx ends or each does
// not want more. A stream that was cut is taken up again where it ended; a pxed
// that does not answer the first time is an error.
func (c *Client) Follow(ctx context.Context, after int64, each func(desk.Event) error) error {
	for first := true; ; first = false {
		final, err := c.follow(ctx, &after, each)
		switch {
		case ctx.Err() != nil:
			return nil
		case final || first && err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// follow reads one stream; final says that there is no sense in another.
func (c *Client) follow(ctx context.Context, after *int64, each func(desk.Event) error) (final bool, err error) {
	r, err := c.request(ctx, http.MethodGet, "/api/v1/events", nil)
	if err != nil {
		return true, err
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", strconv.FormatInt(*after, 10))
	answer, err := c.http.Do(r)
	if err != nil {
		return false, c.unreachable(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return true, refusal(answer)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var e desk.Event
		if !ok || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		*after = e.Seq
		if err := each(e); err != nil {
			return true, err
		}
	}
	return false, nil // cut, or the server has stopped
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, in)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return r, nil
}

func (c *Client) ask(ctx context.Context, method, path string, body, into any) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return c.unreachable(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return refusal(answer)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into); err != nil {
		return diag.WithHint(fmt.Errorf("reading the answer of %s: %w", c.where, err), notPxed)
	}
	return nil
}

// unreachable says what to do when nobody answers.
func (c *Client) unreachable(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return diag.WithHint(fmt.Errorf("no pxed answers on %s", c.where), "start one with pxed serve, or name another with --socket or --server")
	case errors.Is(err, fs.ErrPermission):
		return diag.WithHint(fmt.Errorf("no permission to talk to the pxed on %s", c.where), "run as root or as the user who runs pxed, or use --server and --token-file")
	case errors.Is(err, context.DeadlineExceeded):
		return exit.With(exit.Timeout, diag.WithHint(fmt.Errorf("pxed on %s did not answer within %s", c.where, patience), "look at its log, and at /healthz: the ledger may have no majority"))
	}
	return diag.WithHint(fmt.Errorf("asking pxed on %s: %w", c.where, err), "is the address right, and does pxed run there? it says where it serves when it starts")
}

// refusal reads why not. What protects data has an exit code of its own.
func refusal(answer *http.Response) error {
	var e struct{ Error, Hint, Code string }
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil || json.Unmarshal(body, &e) != nil || e.Error == "" {
		return diag.WithHint(fmt.Errorf("the answer was %s, without a reason", answer.Status), notPxed)
	}
	err = &Refused{Status: answer.StatusCode, Code: e.Code, Reason: e.Error}
	if hint := hintOf(answer, e.Code, e.Hint); hint != "" {
		err = diag.WithHint(err, hint)
	}
	return exit.With(codeOf(answer.StatusCode, e.Code), err)
}

// hintOf is what a person at a command line can do: that a header is missing is of
// no use to one.
func hintOf(answer *http.Response, code, hint string) string {
	switch {
	case code != "unauthorized":
		return hint
	case answer.Request.Header.Get("Authorization") == "":
		return "run as root or as the user who runs pxed, or use --server and --token-file"
	}
	return "the token is not that of this pxed: copy what pxed token prints where it runs into a file (mode 0600), and name it with --token-file"
}

// codeOf is the exit code of a refusal. What protects data has one of its own, and
// a name that there is not is the same mistake everywhere.
func codeOf(status int, code string) exit.Code {
	switch machine.Code(code) {
	case desk.CodeNoNode, desk.CodeNoMachine, desk.CodeNoMember:
		return exit.Usage
	}
	switch status {
	case http.StatusForbidden, http.StatusConflict:
		return exit.Refused
	case http.StatusBadRequest:
		return exit.Usage
	}
	return exit.Failed
}
