// Package network brings up one network interface of a machine that is being
// installed: by the address it netbooted from, with an address from DHCP, and with
// words for whoever stands before it when the wrong cable is plugged in.
package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/diag"
)

// Request says which interface is wanted and how long things may take.
type Request struct {
	MAC string // of the interface the machine netbooted from; "" takes any with a link
	Say func(string)

	Appear time.Duration // for the interface to appear, and its driver before it
	Link   time.Duration // for its link to come up; switches with spanning tree take 30 s more
	DHCP   time.Duration // for an address
	Load   func()        // loads drivers for what is plugged in; called again and again
}

// Up is an interface that works.
type Up struct {
	Name    string
	MAC     string
	Address net.IPNet
	Server  net.IP // DHCP server
	Lease   time.Duration
}

func (u Up) String() string {
	return fmt.Sprintf("%s (%s) has %s from DHCP server %s", u.Name, u.MAC, u.Address.String(), u.Server)
}

// Start brings the interface up. Without a wanted one all interfaces with a link
// are tried in the order of their names.
func Start(ctx context.Context, r Request) (Up, error) {
	nics, err := r.appear(ctx)
	if err != nil {
		return Up{}, err
	}
	for _, n := range nics {
		if err := setUp(n.Name); err != nil {
			r.Say(fmt.Sprintf("%s cannot be brought up: %v", n.Name, err))
		}
	}
	linked, err := r.linked(ctx, nics)
	if err != nil {
		return Up{}, err
	}
	var errs []error
	for _, n := range linked {
		up, err := r.address(ctx, n)
		if err == nil {
			return up, nil
		}
		r.Say(fmt.Sprintf("%s: %v", n.Name, err))
		errs = append(errs, fmt.Errorf("%s (%s): %w", n.Name, n.MAC, err))
	}
	return Up{}, diag.WithHint(fmt.Errorf("no address from DHCP: %w", errors.Join(errs...)),
		"is a DHCP server in this network? with spanning tree on the switch port, turn on its edge mode (portfast)")
}

// nic is an interface with hardware behind it.
type nic struct{ Name, MAC string }

// appear waits for the wanted interface, or for any.
func (r Request) appear(ctx context.Context) ([]nic, error) {
	var all []nic
	for deadline := time.Now().Add(r.Appear); ; {
		if r.Load != nil {
			r.Load()
		}
		var err error
		if all, err = list("/sys/class/net"); err != nil {
			return nil, err
		}
		if found := wanted(all, r.MAC); len(found) > 0 {
			return found, nil
		}
		if time.Now().After(deadline) {
			return nil, missing(all, r.MAC)
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func wanted(all []nic, mac string) []nic {
	if mac == "" {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(n nic) bool { return !strings.EqualFold(n.MAC, mac) })
}

func missing(all []nic, mac string) error {
	const hint = "its driver may not be in the installer's initramfs: build for the other substrate, or name the driver to the maintainers"
	switch {
	case len(all) == 0:
		return diag.WithHint(errors.New("this machine shows no network interface"), hint)
	default:
		var names []string
		for _, n := range all {
			names = append(names, n.Name+" "+n.MAC)
		}
		return diag.WithHint(fmt.Errorf("the interface %s that this machine netbooted from is not there, only %s", mac, strings.Join(names, ", ")), hint)
	}
}

// list returns the interfaces that have hardware behind them, in the order of
// their names.
func list(dir string) ([]nic, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing network interfaces: %w", err)
	}
	var out []nic
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), "device")); err != nil {
			continue
		}
		out = append(out, nic{e.Name(), read(dir, e.Name(), "address")})
	}
	return out, nil
}

// linked waits until a cable is found, and then a little for the others.
func (r Request) linked(ctx context.Context, nics []nic) ([]nic, error) {
	told := false
	for deadline := time.Now().Add(r.Link); ; {
		up := slices.DeleteFunc(slices.Clone(nics), func(n nic) bool { return read("/sys/class/net", n.Name, "carrier") != "1" })
		if len(up) > 0 && (len(up) == len(nics) || r.MAC != "" || told) {
			return up, nil
		}
		if time.Now().After(deadline) {
			return nil, diag.WithHint(fmt.Errorf("no link on %s within %s", names(nics), r.Link), others(nics))
		}
		if !told {
			told = true
			r.Say("waiting for a link on " + names(nics))
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func names(nics []nic) string {
	var out []string
	for _, n := range nics {
		out = append(out, n.Name+" ("+n.MAC+")")
	}
	return strings.Join(out, ", ")
}

// others is the hint for a link that is missing: a machine with two sockets has
// its cable in the other one more often than a broken cable.
func others(nics []nic) string {
	all, err := list("/sys/class/net")
	if err != nil {
		return "check the cable"
	}
	for _, n := range all {
		if !slices.Contains(nics, n) && setUp(n.Name) == nil && read("/sys/class/net", n.Name, "carrier") == "1" {
			return fmt.Sprintf("the cable is in the socket of %s (%s)", n.Name, n.MAC)
		}
	}
	return "check the cable and the switch"
}

func read(elements ...string) string {
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		return "" // carrier of an interface that is down
	}
	return strings.TrimSpace(string(data))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
