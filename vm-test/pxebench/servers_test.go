package pxebench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	tftp "github.com/pin/tftp/v3"

	"github.com/slipway/slipway/internal/pxed/dhcpd"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
	"github.com/slipway/slipway/internal/pxed/tftpd"
	"github.com/slipway/slipway/vm-test/netns"
)

// roleVariable makes the test program one of our servers, in a process of its own
// like the others.
const roleVariable = "SLIPWAY_PXEBENCH_ROLE"

var (
	own  = netip.MustParsePrefix("10.70.0.1/16")
	peer = netip.MustParsePrefix("10.70.0.2/16")
)

const (
	first = "10.70.1.0"
	last  = "10.70.250.255"
)

// bench is a server's host and a client's, joined by a bridge.
type bench struct {
	server, client *netns.Host
	dir            string // with the file "boot" to be served
}

func newBench(t *testing.T, size int) *bench {
	b := &bench{server: netns.NewHost(t), client: netns.NewHost(t), dir: t.TempDir()}
	bridge := netns.Bridge(t, "")
	netns.Plug(t, bridge, b.server, "52:54:00:70:00:01", own.String())
	netns.Plug(t, bridge, b.client, "52:54:00:70:00:02", peer.String())
	if err := os.Chmod(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "boot"), make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	return b
}

// run starts a server on its host and returns how to end it, which tells how much
// processor time it took.
func (b *bench) run(t *testing.T, env []string, name string, args ...string) func() time.Duration {
	t.Helper()
	cmd := b.server.Command(context.Background(), name, args...)
	log, err := os.Create(filepath.Join(b.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() time.Duration {
		cmd.Process.Signal(syscall.SIGTERM)
		killed := time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		killed.Stop()
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s said: %.2000s", name, text)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
}

// dhcpServers are started one after the other. All write a log to a file, as they
// would in production.
func (b *bench) dhcpServers() map[string]func(*testing.T) func() time.Duration {
	return map[string]func(*testing.T) func() time.Duration{
		"pxed": func(t *testing.T) func() time.Duration { return b.run(t, []string{roleVariable + "=dhcp"}, self(t)) },
		"dnsmasq": func(t *testing.T) func() time.Duration {
			return b.run(t, nil, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--bind-interfaces", "--interface=eth0", "--no-ping",
				"--dhcp-range="+first+","+last+",255.255.0.0,1h", "--dhcp-lease-max=100000", "--dhcp-authoritative", "--dhcp-boot=boot,,"+own.Addr().String(),
				"--dhcp-leasefile="+filepath.Join(b.dir, "leases"), "--user=root", "--log-facility=-", "--pid-file")
		},
		"kea": func(t *testing.T) func() time.Duration {
			config := filepath.Join(b.dir, "kea.json")
			text := fmt.Sprintf(`{"Dhcp4":{"interfaces-config":{"interfaces":["eth0"],"dhcp-socket-type":"udp"},"lease-database":{"type":"memfile","name":"%s/kea.csv"},
				"subnet4":[{"id":1,"subnet":"10.70.0.0/16","next-server":"%s","boot-file-name":"boot","pools":[{"pool":"%s - %s"}]}],
				"loggers":[{"name":"kea-dhcp4","severity":"INFO","output_options":[{"output":"stdout"}]}]}}`, b.dir, own.Addr(), first, last)
			if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			return b.run(t, []string{"KEA_PIDFILE_DIR=" + b.dir, "KEA_LOCKFILE_DIR=" + b.dir}, "kea-dhcp4", "-c", config)
		},
	}
}

func (b *bench) tftpServers() map[string]func(*testing.T) func() time.Duration {
	return map[string]func(*testing.T) func() time.Duration{
		"pxed": func(t *testing.T) func() time.Duration {
			return b.run(t, []string{roleVariable + "=tftp", "DIR=" + b.dir}, self(t))
		},
		"pin/tftp library": func(t *testing.T) func() time.Duration {
			return b.run(t, []string{roleVariable + "=library", "DIR=" + b.dir}, self(t))
		},
		"tftpd-hpa": func(t *testing.T) func() time.Duration {
			return b.run(t, nil, "in.tftpd", "--listen", "--foreground", "--address", own.Addr().String()+":69", "--user", "root", "--secure", b.dir)
		},
		"dnsmasq": func(t *testing.T) func() time.Duration {
			return b.run(t, nil, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--bind-interfaces", "--interface=eth0",
				"--enable-tftp", "--tftp-root="+b.dir, "--user=root", "--log-facility=-", "--pid-file")
		},
	}
}

func self(t *testing.T) string {
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// serveAs is the body of one of our servers; it runs until it is killed.
func serveAs(role string) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := serveRole(context.Background(), role, log); err != nil {
		log.Error("serving", "err", err)
		os.Exit(1)
	}
}

func serveRole(ctx context.Context, role string, log *slog.Logger) error {
	switch role {
	case "dhcp":
		s, err := dhcpd.Listen(ctx, dhcpd.Config{Log: log, Interfaces: []dhcpd.Interface{{
			Name: "eth0",
			Config: pxe.Config{
				Mode: pxe.ModeDHCP, Server: own.Addr(), HTTP: "http://" + own.Addr().String(), Boot: pxe.DefaultBootFiles(),
				Lease: pxe.LeaseOptions{Network: own.Masked()},
			},
			Leases: lease.Config{Network: own.Masked(), First: netip.MustParseAddr(first), Last: netip.MustParseAddr(last)},
		}}})
		if err != nil {
			return err
		}
		return s.Serve(ctx)
	case "tftp":
		s, err := tftpd.Listen(ctx, tftpd.Config{
			Log: log, Files: tftpd.NewDirectory(os.DirFS(os.Getenv("DIR")), "boot"),
			Interfaces: []tftpd.Interface{{Name: "eth0", Server: own.Addr()}},
		})
		if err != nil {
			return err
		}
		return s.Serve(ctx)
	default:
		s := tftp.NewServer(func(name string, to io.ReaderFrom) error {
			f, err := os.Open(filepath.Join(os.Getenv("DIR"), filepath.Base(name)))
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = to.ReadFrom(f)
			return err
		}, nil)
		return s.ListenAndServe(net.JoinHostPort(own.Addr().String(), "69"))
	}
}
