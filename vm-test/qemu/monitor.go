package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// monitor speaks QMP, QEMU's JSON protocol: one command at a time, events are skipped.
type monitor struct {
	mu   sync.Mutex
	conn net.Conn
	dec  *json.Decoder
	err  error // why there is no connection
}

// message is anything that QEMU may send: a greeting, an event or an answer.
type message struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
}

// newMonitor takes over the socket f.
func newMonitor(f *os.File) *monitor {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return &monitor{err: fmt.Errorf("opening the monitor: %w", err)}
	}
	return &monitor{conn: conn, dec: json.NewDecoder(conn)}
}

// handshake leaves the negotiation mode in which QMP starts. The greeting has
// neither a result nor an error and is skipped like an event.
func (m *monitor) handshake(ctx context.Context) error {
	return m.execute(ctx, "qmp_capabilities", nil, nil)
}

// execute runs a command and decodes its result, if result is not nil.
func (m *monitor) execute(ctx context.Context, command string, args, result any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	deadline, _ := ctx.Deadline() // none is the zero time, which lifts the last one
	if err := m.conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("monitor: %w", err)
	}
	request := map[string]any{"execute": command}
	if args != nil {
		request["arguments"] = args
	}
	if err := json.NewEncoder(m.conn).Encode(request); err != nil {
		return fmt.Errorf("monitor: sending %s: %w", command, err)
	}
	answer, err := m.answer()
	if err != nil {
		return fmt.Errorf("monitor: %s: %w", command, err)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer, result)
}

func (m *monitor) answer() (json.RawMessage, error) {
	for {
		var msg message
		if err := m.dec.Decode(&msg); err != nil {
			return nil, err
		}
		if msg.Error != nil {
			return nil, errors.New(msg.Error.Desc)
		}
		if msg.Return != nil {
			return msg.Return, nil
		}
	}
}

// forwards lists the host addresses that are forwarded into the guest, in the
// order of the cards. QEMU tells it only as text.
func (m *monitor) forwards(ctx context.Context) ([]string, error) {
	var text string
	args := map[string]string{"command-line": "info usernet"}
	if err := m.execute(ctx, "human-monitor-command", args, &text); err != nil {
		return nil, err
	}
	return parseForwards(text), nil
}

// parseForwards reads lines of the form
// "TCP[HOST_FORWARD]  12  127.0.0.1 35995  10.0.2.15  22  0  0".
func parseForwards(text string) []string {
	var addrs []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) >= 4 && f[0] == "TCP[HOST_FORWARD]" {
			addrs = append(addrs, net.JoinHostPort(f[2], f[3]))
		}
	}
	return addrs
}

func (m *monitor) close() {
	if m.conn == nil {
		return
	}
	// Unblocks an execute that another goroutine may be in.
	m.conn.SetDeadline(time.Now())
	m.conn.Close()
}
