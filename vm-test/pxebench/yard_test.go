package pxebench

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
	"github.com/slipway/slipway/vm-test/netns"
	"github.com/slipway/slipway/vm-test/rounds"
)

// The network: a client, the servers behind it, and addresses to give.
var (
	peer = netip.MustParsePrefix("10.64.0.2/10")
	own  = netip.MustParsePrefix("10.64.0.10/10") // of the first server
)

const (
	first = "10.65.0.0"
	last  = "10.95.255.255"
)

// The files that are served, by the names of the build.
const (
	loader = "netboot/ipxe/snponly.efi"
	kernel = "netboot/vmlinuz"
	small  = "netboot/ipxe/undionly.kpxe"
)

// yard is a client's host, a bridge, and what all servers serve.
type yard struct {
	t      *testing.T
	bridge string
	client *netns.Host
	build  string // directory of a signed build
	next   netip.Addr

	contents map[string][]byte // of the files of the build
}

// newYard makes files of these sizes to be served.
func newYard(t *testing.T, sizes map[string]int) *yard {
	t.Helper()
	y := &yard{t: t, bridge: netns.Bridge(t, ""), client: netns.NewHost(t), next: own.Addr()}
	netns.Plug(t, y.bridge, y.client, "52:54:00:70:00:02", peer.String())
	files := buildtest.Contents()
	for name, size := range sizes {
		files[name] = content(size)
	}
	y.build, y.contents = buildtest.Write(t, files), files
	return y
}

func content(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i * i >> 7)
	}
	return b
}

// server is a program under measurement.
type server struct {
	name string
	addr netip.Addr
	host *netns.Host
	dir  string // for its state and its log
	cmd  *exec.Cmd
	end  chan struct{} // closed when it has ended
}

// host makes a host for a server.
func (y *yard) host(name string) *server {
	y.t.Helper()
	s := &server{name: name, addr: y.next, host: netns.NewHost(y.t), dir: y.t.TempDir()}
	y.next = y.next.Next()
	mac := fmt.Sprintf("52:54:00:70:01:%02x", s.addr.As4()[3])
	netns.Plug(y.t, y.bridge, s.host, mac, netip.PrefixFrom(s.addr, own.Bits()).String())
	return s
}

// run starts a program that serves until the test ends; it dies with it. Its log
// goes to a file, as it would in production.
func (s *server) run(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd = s.host.Command(context.Background(), name, args...)
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = append(os.Environ(), env...), log, log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.end = make(chan struct{})
	go func() {
		s.cmd.Wait()
		close(s.end)
	}()
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("%s said: %s", s.name, tail(log.Name()))
		}
	})
}

func (s *server) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.end:
	case <-time.After(5 * time.Second):
		s.cmd.Process.Kill()
		<-s.end
	}
}

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// cpu is the processor time that the server has used.
func (s *server) cpu() time.Duration { return rounds.CPU(s.cmd.Process.Pid) }

// pxed starts the program as it is shipped, as the only DHCP server.
func (y *yard) pxed() *server {
	y.t.Helper()
	program, err := filepath.Abs(filepath.Join(os.Getenv("SLIPWAY_BIN_DIR"), "pxed"))
	if os.Getenv("SLIPWAY_BIN_DIR") == "" {
		program, err = filepath.Abs("../../bin/pxed")
	}
	if err != nil {
		y.t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil && !*full {
		y.t.Skip("make build first: ", err)
	}
	s := y.host("pxed")
	key, err := artifact.FormatKey(buildtest.Public(), "bench")
	if err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "key.pub"), []byte(key), 0o644); err != nil {
		y.t.Fatal(err)
	}
	s.run(y.t, nil, program, "serve", "-p", "../../profiles/lab.yaml", "--image", y.build, "--key", filepath.Join(s.dir, "key.pub"),
		"-i", "eth0", "--mode", "dhcp", "--force", "--pool", first+"-"+last, "--state", filepath.Join(s.dir, "state"), "--socket", s.socket())
	return s
}

// socket is a short path: one of a unix socket has at most 107 bytes.
func (s *server) socket() string {
	return filepath.Join("/tmp", filepath.Base(filepath.Dir(s.dir))+".sock")
}

// missing reports whether a program is not installed. In earnest all must be.
func (y *yard) missing(program, pack string) bool {
	y.t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return false
	}
	if *full {
		y.t.Fatalf("%s is not installed\nhint: scripts/deps bench, or apt-get install %s", program, pack)
	}
	y.t.Logf("%s is not installed: not beside it", program)
	return true
}

func (y *yard) dnsmasq() *server {
	if y.missing("dnsmasq", "dnsmasq-base") {
		return nil
	}
	s := y.host("dnsmasq")
	s.run(y.t, nil, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--bind-interfaces", "--interface=eth0", "--no-ping",
		"--dhcp-range="+first+","+last+",255.192.0.0,1h", "--dhcp-lease-max=100000", "--dhcp-authoritative", "--dhcp-boot="+loader+",,"+s.addr.String(),
		"--enable-tftp", "--tftp-root="+y.build, "--dhcp-leasefile="+filepath.Join(s.dir, "leases"), "--user=root", "--log-facility=-", "--pid-file")
	return s
}

func (y *yard) kea() *server {
	if y.missing("kea-dhcp4", "kea-dhcp4-server") {
		return nil
	}
	s := y.host("kea")
	config := filepath.Join(s.dir, "kea.json")
	text := fmt.Sprintf(`{"Dhcp4":{"interfaces-config":{"interfaces":["eth0"],"dhcp-socket-type":"udp"},"lease-database":{"type":"memfile","name":"%s/kea.csv"},
		"subnet4":[{"id":1,"subnet":"%s","next-server":"%s","boot-file-name":"%s","pools":[{"pool":"%s - %s"}]}],
		"loggers":[{"name":"kea-dhcp4","severity":"INFO","output_options":[{"output":"stdout"}]}]}}`, s.dir, own.Masked(), s.addr, loader, first, last)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		y.t.Fatal(err)
	}
	s.run(y.t, []string{"KEA_PIDFILE_DIR=" + s.dir, "KEA_LOCKFILE_DIR=" + s.dir}, "kea-dhcp4", "-c", config)
	return s
}

func (y *yard) tftpd() *server {
	if y.missing("in.tftpd", "tftpd-hpa") {
		return nil
	}
	s := y.host("tftpd-hpa")
	s.run(y.t, nil, "in.tftpd", "--listen", "--foreground", "--address", s.addr.String()+":69", "--user", "root", "--secure", y.build)
	return s
}

// nginx runs as its manual tells for large files: sendfile, whole packets. It logs
// nothing about a request, as pxed does unless it is told to.
func (y *yard) nginx() *server {
	if y.missing("nginx", "nginx-light") {
		return nil
	}
	s := y.host("nginx")
	conf := fmt.Sprintf(`user root; worker_processes auto; pid %[1]s/pid; error_log %[1]s/error.log; daemon off;
events { worker_connections 256; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_timeout 60; keepalive_requests 1000000;
 client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
 server { listen %[2]s:8080; location /artifacts/ { alias %[3]s/; } } }
`, s.dir, s.addr, y.build)
	path := filepath.Join(s.dir, "conf")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		y.t.Fatal(err)
	}
	s.run(y.t, nil, "nginx", "-e", filepath.Join(s.dir, "error.log"), "-p", s.dir, "-c", path)
	return s
}

// servers are those that are there, by name.
func servers(all ...*server) (names []string, byName map[string]*server) {
	byName = map[string]*server{}
	for _, s := range all {
		if s != nil {
			names, byName[s.name] = append(names, s.name), s
		}
	}
	return names, byName
}

func has(names []string, name string) bool { return strings.Contains(strings.Join(names, "\n"), name) }
