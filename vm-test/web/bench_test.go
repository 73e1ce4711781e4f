package web

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/progress"
	"github.com/slipway/slipway/internal/pxed"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
	"github.com/slipway/slipway/internal/pxed/pxe"
)

var benchRun = flag.Bool("bench-run", false, "measure HTTP beside nginx; needs nginx and a minute")

// Sizes of the measurement, and how far pxed may be behind.
const (
	benchSize   = 100 << 20 // bytes of the file
	benchRounds = 7
	benchRatio  = 0.8
)

// TestBenchHTTP fetches the same file from pxed and from nginx in turns: one after
// the other over a kept connection, and by eight at once.
func TestBenchHTTP(t *testing.T) {
	if !*benchRun {
		t.Log("not measuring: go test ./vm-test/web -run TestBenchHTTP -v -bench-run")
		return
	}
	files := buildtest.Contents()
	big := make([]byte, benchSize)
	for i := range big {
		big[i] = byte(i * i >> 7)
	}
	files["netboot/vmlinuz"] = big
	dir := buildtest.Write(t, files)
	servers := map[string]string{
		"pxed":  servePxed(t, dir) + machine.PathArtifacts + "netboot/vmlinuz",
		"nginx": serveNginx(t, dir) + "/netboot/vmlinuz",
	}
	for _, clients := range []int{1, 8} {
		speed := map[string][]float64{}
		for range benchRounds {
			for name, url := range servers {
				speed[name] = append(speed[name], fetchAll(t, url, clients))
			}
		}
		ratio := median(speed["pxed"]) / median(speed["nginx"])
		t.Logf("%d at once: pxed %.0f MB/s, nginx %.0f MB/s, ratio %.2f", clients, median(speed["pxed"]), median(speed["nginx"]), ratio)
		if ratio < benchRatio {
			t.Errorf("with %d clients pxed has %.2f of nginx's speed, at least %.2f is wanted", clients, ratio, benchRatio)
		}
	}
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

// fetchAll fetches the file by so many clients at once and gives MB/s of all.
func fetchAll(t *testing.T, url string, clients int) float64 {
	t.Helper()
	const each = 3
	var wg sync.WaitGroup
	start := time.Now()
	for range clients {
		wg.Go(func() {
			c := http.Client{Transport: &http.Transport{DisableCompression: true, ReadBufferSize: 256 << 10}}
			defer c.CloseIdleConnections()
			for range each {
				if err := fetch(&c, url); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return float64(clients*each*benchSize) / 1e6 / time.Since(start).Seconds()
}

func fetch(c *http.Client, url string) error {
	answer, err := c.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	buf := make([]byte, 256<<10)
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{answer.Body}, buf)
	if err == nil && n != benchSize {
		err = fmt.Errorf("%s: %d bytes", url, n)
	}
	return err
}

func servePxed(t *testing.T, dir string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	started, ended := make(chan []netip.AddrPort, 1), make(chan error, 1)
	o := pxed.Options{
		Cluster: desktest.Cluster(), Image: dir, Key: buildtest.Public(), Mode: pxe.ModeProxy, HTTP: "127.0.0.1:0", Ledger: desktest.NewMemory(),
		Log: slog.New(slog.DiscardHandler), Progress: progress.Nop{}, Started: func(a []netip.AddrPort) { started <- a },
	}
	go func() { ended <- pxed.Serve(ctx, o) }()
	t.Cleanup(func() { stop(); <-ended })
	select {
	case a := <-started:
		return "http://" + a[0].String()
	case err := <-ended:
		t.Fatal(err)
	}
	return ""
}

// serveNginx runs nginx as its manual tells for large files: sendfile, whole
// packets, no log.
func serveNginx(t *testing.T, dir string) string {
	t.Helper()
	path, err := exec.LookPath("/usr/sbin/nginx")
	if err != nil {
		t.Fatalf("%v (apt-get install nginx-light)", err)
	}
	home := t.TempDir()
	socket := "127.0.0.1:" + freePort(t)
	conf := fmt.Sprintf(`user root; worker_processes auto; pid %[1]s/pid; error_log %[1]s/error.log; daemon off;
events { worker_connections 256; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_timeout 60;
 client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
 server { listen %[2]s; root %[3]s; } }
`, home, socket, dir)
	if err := os.WriteFile(filepath.Join(home, "conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "-e", filepath.Join(home, "error.log"), "-p", home, "-c", filepath.Join(home, "conf"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	for range 200 {
		if answer, err := http.Head("http://" + socket + "/index.json"); err == nil {
			answer.Body.Close()
			return "http://" + socket
		}
		time.Sleep(20 * time.Millisecond)
	}
	said, _ := os.ReadFile(filepath.Join(home, "error.log"))
	t.Fatalf("nginx does not answer: %s", strings.TrimSpace(string(said)))
	return ""
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
