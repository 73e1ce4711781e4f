package dhcpd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
	"github.com/slipway/slipway/vm-test/netns"
)

var own = netip.MustParsePrefix("10.67.0.1/24")

// network is a server on a bridge, and what it did.
type network struct {
	bridge string
	server *Server
	stop   func()

	mu    sync.Mutex
	log   bytes.Buffer
	gave  []string
	saved []lease.Lease
	fail  error // of Save
	wake  chan struct{}
}

func (n *network) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log.Write(b)
	n.poke()
	return len(b), nil
}

func (n *network) DHCP(firmware, gave string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gave = append(n.gave, firmware+" "+gave)
	n.poke()
}

func (n *network) Load(context.Context) ([]lease.Lease, error) { return nil, nil }

func (n *network) Save(_ context.Context, leases []lease.Lease) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail == nil {
		n.saved = append(n.saved, leases...)
	}
	return n.fail
}

func (n *network) leases() []lease.Lease {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.saved
}

func (n *network) fails(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

func (n *network) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// wait waits until what happened contains the texts.
func (n *network) wait(t *testing.T, texts ...string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		n.mu.Lock()
		all := n.log.String() + strings.Join(n.gave, "\n")
		n.mu.Unlock()
		missing := slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return strings.Contains(all, s) })
		if len(missing) == 0 {
			return
		}
		select {
		case <-n.wake:
		case <-limit:
			t.Fatalf("%q did not happen; what did:\n%s", missing, all)
		}
	}
}

func serve(t *testing.T, mode pxe.Mode, change func(*Config), prepare ...func(*Server)) *network {
	t.Helper()
	n := &network{bridge: netns.Bridge(t, own.String()), wake: make(chan struct{}, 1)}
	c := Config{
		Log: slog.New(slog.NewTextHandler(n, &slog.HandlerOptions{Level: slog.LevelDebug})), Counters: n, Store: n,
		Interfaces: []Interface{{
			Name: n.bridge,
			Config: pxe.Config{
				Mode: mode, Server: own.Addr(), HTTP: "http://10.67.0.1:8080", Boot: pxe.DefaultBootFiles(),
				Lease: pxe.LeaseOptions{Network: own.Masked(), Router: netip.MustParseAddr("10.67.0.254")},
			},
			Leases: lease.Config{
				Network: own.Masked(), First: netip.MustParseAddr("10.67.0.100"), Last: netip.MustParseAddr("10.67.0.110"),
				Reserved: []lease.Reservation{{MAC: "52:54:00:67:00:aa", Addr: netip.MustParseAddr("10.67.0.11"), Host: "n1"}},
			},
		}},
	}
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var err error
	if n.server, err = Listen(ctx, c); err != nil {
		t.Fatal(err)
	}
	for _, f := range prepare {
		f(n.server)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.server.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	n.stop = func() { cancel(); running.Wait() }
	t.Cleanup(n.stop)
	return n
}

// client plugs a host into the network and returns it.
func (n *network) client(t *testing.T, mac string) *netns.Host {
	h := netns.NewHost(t)
	netns.Plug(t, n.bridge, h, mac, "")
	return h
}

// dhclient runs ISC's client until it has an address, and returns what it was told.
func dhclient(t *testing.T, h *netns.Host) string {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nset | grep -E '^(reason|new_|old_)' >>"+dir+"/told\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := h.Command(t.Context(), "dhclient", "-1", "-d", "-cf", "/dev/null", "-lf", dir+"/leases", "-pf", dir+"/pid", "-sf", script, "eth0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if told, err := os.ReadFile(filepath.Join(dir, "told")); err == nil && strings.Contains(string(told), "new_dhcp_lease_time") {
			return strings.ReplaceAll(string(told), "'", "")
		}
	}
	t.Fatal("dhclient has no lease")
	return ""
}

func TestTakenPortNamesItsHolder(t *testing.T) {
	n := serve(t, pxe.ModeProxy, nil)
	_, err := Listen(t.Context(), n.server.cfg)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("udp port 67 on %s is taken by dhcpd.test (pid %d)", n.bridge, os.Getpid())) || !strings.Contains(diag.HintOf(err), "mode: dhcp") {
		t.Errorf("got %v (hint: %s)", err, diag.HintOf(err))
	}
	c := n.server.cfg
	c.Interfaces = []Interface{{Name: "eno99"}}
	if _, err := Listen(t.Context(), c); err == nil || !strings.Contains(err.Error(), "there is no interface eno99") {
		t.Errorf("got %v", err)
	}
}

func TestPortsAreFreeAfterStop(t *testing.T) {
	n := serve(t, pxe.ModeDHCP, nil)
	n.stop()
	s, err := Listen(t.Context(), n.server.cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.close()
}

var errFull = errors.New("the disk is full")
