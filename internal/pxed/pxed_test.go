package pxed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/progress"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
	"github.com/slipway/slipway/internal/pxed/client"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
	"github.com/slipway/slipway/internal/pxed/pxe"
)

// options serve HTTP on a free port of 127.0.0.1, and a socket.
func options(t *testing.T) Options {
	t.Helper()
	return Options{
		Cluster: desktest.Cluster(), Image: buildtest.Write(t, buildtest.Contents()), Key: buildtest.Public(), Mode: pxe.ModeProxy,
		HTTP: "127.0.0.1:0", Socket: filepath.Join(t.TempDir(), "pxed.sock"), Token: "secret", Ledger: desktest.NewMemory(), Discover: true,
		Log: slog.New(slog.DiscardHandler), Progress: progress.Nop{},
	}
}

// serve runs a pxed until the test ends or stop is called, which gives its error.
func serve(t *testing.T, o Options) (base string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	started, ended := make(chan []netip.AddrPort, 1), make(chan error, 1)
	o.Started = func(a []netip.AddrPort) { started <- a }
	go func() { ended <- Serve(ctx, o) }()
	stop = func() error {
		cancel()
		select {
		case err := <-ended:
			ended <- err
			return err
		case <-time.After(20 * time.Second):
			return errors.New("pxed does not stop")
		}
	}
	t.Cleanup(func() { _ = stop() })
	select {
	case a := <-started:
		return "http://" + a[0].String(), stop
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(20 * time.Second):
		t.Fatal("pxed does not start")
	}
	return "", nil
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestServesEverything(t *testing.T) {
	o := options(t)
	base, stop := serve(t, o)
	for path, want := range map[string]string{
		"/": "<!doctype html>", "/page/page.js": "EventSource", "/page/page.css": "color-scheme", "/metrics": "slipway_machines",
		"/healthz": "ok", "/artifacts/netboot/ipxe/snponly.efi": "MZ snponly.efi", "/boot/ipxe?mac=" + desktest.MAC1: "#!ipxe",
	} {
		if status, body := get(t, base+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
	}
	c := client.Socket(o.Socket)
	if m, err := c.Arm(t.Context(), "n1", desk.Order{}); err != nil || !m.Grant.Live {
		t.Errorf("%+v %v", m, err)
	}
	if st, err := os.Stat(o.Socket); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(o.Socket); err == nil {
		t.Error("the socket is left behind")
	}
}

// Streams have no end of their own; they must not hold up the stop.
func TestStopsWithOpenStreams(t *testing.T) {
	base, stop := serve(t, options(t))
	answer, err := http.Get(base + "/page/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	first := make([]byte, 64)
	if n, err := answer.Body.Read(first); err != nil || !bytes.Contains(first[:n], []byte("event: machine")) {
		t.Errorf("%q %v", first[:n], err)
	}
	start := time.Now()
	if err := stop(); err != nil || time.Since(start) > drain {
		t.Errorf("stopped after %s, %v", time.Since(start), err)
	}
}

func TestRefusesToServe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]struct {
		set  func(*Options)
		want string
		code exit.Code
	}{
		"another profile": {func(o *Options) { o.Cluster.Environment = "dev" }, "the build is of lab", exit.Usage},
		"a changed build": {func(o *Options) { buildtest.Put(t, o.Image, "netboot/vmlinuz", []byte("x")) }, "netboot/vmlinuz", exit.Failed},
		"no build":        {func(o *Options) { o.Image += "/nonesuch" }, "opening build", exit.Failed},
		"no installer": {func(o *Options) {
			files := buildtest.Contents()
			delete(files, "netboot/initrd-install.zst")
			o.Image = buildtest.Write(t, files)
		}, "no file of the role installer", exit.Usage},
		"a taken port":       {func(o *Options) { o.HTTP = taken.Addr().String() }, "is taken by", exit.Failed},
		"no address":         {func(o *Options) { o.HTTP = ":8080" }, "nothing to listen on", exit.Usage},
		"no port":            {func(o *Options) { o.HTTP = "127.0.0.1" }, "no address for HTTP", exit.Usage},
		"a name":             {func(o *Options) { o.HTTP = "localhost:8080" }, "no address for HTTP", exit.Usage},
		"no such interface":  {func(o *Options) { o.Interfaces = []string{"nonesuch0"} }, "nonesuch0", exit.Usage},
		"a file as a socket": {func(o *Options) { o.Socket = filepath.Join(o.Image, "index.json") }, "is no socket", exit.Failed},
	} {
		o := options(t)
		c.set(&o)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		err := Serve(ctx, o)
		stop()
		if err == nil || !strings.Contains(err.Error(), c.want) || exit.Of(err) != c.code {
			t.Errorf("%s: %v (exit %d)", name, err, exit.Of(err))
		}
	}
}

// The second pxed on one socket is refused; the socket of a killed one is not in
// the way.
func TestSocketOfAnother(t *testing.T) {
	o := options(t)
	_, stop := serve(t, o)
	second := options(t)
	second.Socket = o.Socket
	if err := Serve(t.Context(), second); err == nil || diag.HintOf(err) == "" || !strings.Contains(err.Error(), "another pxed") {
		t.Errorf("%v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: o.Socket})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close() // as kill -9 leaves it
	_, stop = serve(t, o)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestLeasesFollowTheProfile(t *testing.T) {
	c := desktest.Cluster()
	c.Nodes[0].Interfaces[0] = cluster.Interface{MAC: desktest.MAC1, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.2.15/24")}}
	c.Nodes[1].Interfaces[0] = cluster.Interface{MAC: desktest.MAC2, VLAN: 20, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.2.16/24")}}
	c.Network.Gateway = netip.MustParseAddr("10.0.2.2")
	n := network{"eth0", netip.MustParsePrefix("10.0.2.1/24")}
	l := leases(c, n, Pool{})
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if len(l.Reserved) != 1 || l.Reserved[0].Host != "n1" || l.First.String() != "10.0.2.128" || l.Last.String() != "10.0.2.254" || len(l.Taken) != 2 {
		t.Errorf("%+v", l)
	}
	if o := leaseOptions(c, n); o.Router != c.Network.Gateway || o.Network.String() != "10.0.2.0/24" {
		t.Errorf("%+v", o)
	}
	n.prefix = netip.MustParsePrefix("192.168.9.1/30")
	l = leases(c, n, Pool{})
	if err := l.Check(); err != nil || len(l.Reserved) != 0 || leaseOptions(c, n).Router.IsValid() {
		t.Errorf("%+v %v", l, err)
	}
}

func TestParsePool(t *testing.T) {
	p, err := ParsePool("10.0.0.5-10.0.0.9")
	if err != nil || p.First.String() != "10.0.0.5" || p.Last.String() != "10.0.0.9" {
		t.Errorf("%+v %v", p, err)
	}
	for _, bad := range []string{"", "-", "10.0.0.5", "10.0.0.5-", "a-b", "fe80::1-fe80::2", "10.0.0.5-10.0.0.6-10.0.0.7"} {
		if _, err := ParsePool(bad); exit.Of(err) != exit.Usage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
