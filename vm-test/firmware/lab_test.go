package firmware

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/dhcpd"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
	"github.com/slipway/slipway/internal/pxed/tftpd"
	"github.com/slipway/slipway/vm-test/netns"
)

func TestMain(m *testing.M) { os.Exit(netns.Main(m)) }

// lab is a network with pxed's listeners on it.
type lab struct {
	t      *testing.T
	bridge string
	start  time.Time

	mu     sync.Mutex
	events []string
	wake   chan struct{}
}

var server = netip.MustParsePrefix("10.77.0.1/24")

// bootFiles is where make image has put iPXE.
func bootFiles(t *testing.T) string {
	dir, err := filepath.Abs("../../out/lab")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "netboot/ipxe/snponly.efi")); err != nil {
		t.Fatalf("%v (make image builds it)", err)
	}
	return dir
}

func newLab(t *testing.T, mode pxe.Mode, verdict pxe.Verdict) *lab {
	l := &lab{t: t, bridge: netns.Bridge(t, server.String()), start: time.Now(), wake: make(chan struct{}, 1)}
	root := os.DirFS(bootFiles(t))
	base := "http://" + server.Addr().String() + ":8080"
	c := pxe.Config{Mode: mode, Server: server.Addr(), HTTP: base, Boot: pxe.DefaultBootFiles(), Lease: pxe.LeaseOptions{Network: server.Masked()}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if t.Failed() || testing.Verbose() {
			t.Log(strings.Join(l.events, "\n"))
		}
	})
	log := slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d, err := dhcpd.Listen(ctx, dhcpd.Config{Log: log, Verdicts: fixed(verdict), Interfaces: []dhcpd.Interface{{
		Name: l.bridge, Config: c,
		Leases: lease.Config{Network: server.Masked(), First: netip.MustParseAddr("10.77.0.100"), Last: netip.MustParseAddr("10.77.0.120")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := tftpd.Listen(ctx, tftpd.Config{Log: log, Interfaces: []tftpd.Interface{{Name: l.bridge, Server: server.Addr()}},
		Files: scripted{tftpd.NewDirectory(root, c.Boot.BIOS, c.Boot.UEFI), d}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+machine.PathBoot, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "#!ipxe\necho slipway says: your own disk\nexit 1\n")
	})
	mux.Handle("GET "+machine.PathArtifacts, http.StripPrefix(machine.PathArtifacts, http.FileServerFS(root)))
	listener, err := net.Listen("tcp", server.Addr().String()+":8080")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.note("http " + r.Method + " " + r.URL.String())
		mux.ServeHTTP(w, r)
	})}
	wg.Go(func() { d.Serve(ctx) })
	wg.Go(func() { f.Serve(ctx) })
	wg.Go(func() { web.Serve(listener) })
	t.Cleanup(func() { web.Close() })
	return l
}

// scripted hands iPXE its script when it asks for itself.
type scripted struct {
	tftpd.Files
	dhcp *dhcpd.Server
}

func (s scripted) File(client netip.Addr, name string) ([]byte, error) {
	content, err := s.Files.File(client, name)
	if script := s.dhcp.Script(client); err == nil && script != nil {
		return script, nil
	}
	return content, err
}

type fixed pxe.Verdict

func (f fixed) Verdict(context.Context, pxe.Client) (pxe.Verdict, error) { return pxe.Verdict(f), nil }

// Write takes log lines as events.
func (l *lab) Write(b []byte) (int, error) {
	l.note(strings.TrimSpace(string(b)))
	return len(b), nil
}

func (l *lab) note(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, fmt.Sprintf("%5.1fs %s", time.Since(l.start).Seconds(), event))
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// stepTime bounds the way from one event to the next: a busy machine, OVMF and no KVM.
const stepTime = 90 * time.Second

// expect waits for events with the given texts, in this order.
func (l *lab) expect(texts ...string) {
	l.t.Helper()
	next := 0
	for _, text := range texts {
		limit := time.After(stepTime)
		for {
			l.mu.Lock()
			at := slices.IndexFunc(l.events[next:], func(e string) bool { return strings.Contains(e, text) })
			l.mu.Unlock()
			if at >= 0 {
				next += at + 1
				break
			}
			select {
			case <-l.wake:
			case <-limit:
				l.t.Fatalf("%q did not happen", text)
			}
		}
	}
}

// never says that no event has had the text.
func (l *lab) never(text string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if strings.Contains(e, text) {
			l.t.Errorf("this happened: %s", e)
		}
	}
}

// router puts dnsmasq on the network, as its own DHCP server.
func (l *lab) router(more ...string) {
	l.t.Helper()
	h := netns.NewHost(l.t)
	netns.Plug(l.t, l.bridge, h, "52:54:00:4e:00:fe", "10.77.0.2/24")
	args := []string{"--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--bind-interfaces", "--interface=eth0", "--dhcp-range=10.77.0.100,10.77.0.120",
		"--dhcp-leasefile=" + filepath.Join(l.t.TempDir(), "leases"), "--user=root", "--log-facility=-", "--pid-file"}
	cmd := h.Command(context.Background(), "dnsmasq", append(args, more...)...)
	cmd.Stderr = l
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	l.expect("sockets bound exclusively to interface eth0")
}
