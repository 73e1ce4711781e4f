package vip

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/vip"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/vm-test/netns"
)

func TestMain(m *testing.M) { os.Exit(netns.Main(m)) }

// lab is the servers of the profile dev on one bridge, and an operator beside them.
type lab struct {
	t        *testing.T
	cluster  cluster.Cluster
	servers  []*server
	operator *netns.Host
	client   *http.Client
	bridge   string
}

// server is one host with keepalived and a stand-in for its API server.
type server struct {
	lab  *lab
	node cluster.Node
	host *netns.Host
	dir  string // with the certificates

	api  *http.Server
	tls  *tls.Config
	proc *exec.Cmd
	log  logText
}

// logText keeps what keepalived says.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// count is how often keepalived said something.
func (l *logText) count(what string) int { return strings.Count(l.String(), what) }

func open(t *testing.T) *lab {
	t.Helper()
	if _, err := exec.LookPath("keepalived"); err != nil {
		t.Fatalf("%v\nhint: scripts/deps test", err)
	}
	p, err := profilefile.Load("../../profiles/dev.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, cluster: p.Cluster, bridge: netns.Bridge(t, ""), operator: netns.NewHost(t)}
	netns.Plug(t, l.bridge, l.operator, "52:54:00:aa:00:99", "192.168.124.99/24")
	pair, pool, files := certificates(t)
	l.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: l.operator.Dial,
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: "kubernetes"},
	}}
	for i, n := range l.cluster.Servers() {
		s := &server{lab: l, node: n, host: netns.NewHost(t), dir: files, tls: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}}
		netns.Plug(t, l.bridge, s.host, fmt.Sprintf("52:54:00:aa:00:%02x", i+1), n.Interfaces[0].Addresses[0].String())
		l.servers = append(l.servers, s)
	}
	return l
}

// certificates makes one that is authority, server and client, and a directory with it
// under the names that k3s has.
func certificates(t *testing.T) (tls.Certificate, *x509.CertPool, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"kubernetes"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	dir := t.TempDir()
	for name, data := range map[string][]byte{"server-ca.crt": cert, "client-admin.crt": cert, "client-admin.key": private} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(cert, private)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pair, pool, dir
}

// serve starts the API's stand-in: it says which server it is.
func (s *server) serve() {
	s.lab.t.Helper()
	name := s.node.Name
	s.api = &http.Server{TLSConfig: s.tls, ErrorLog: nil, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) })}
	l := s.host.Listen(s.lab.t, "0.0.0.0:6443")
	go s.api.Serve(tls.NewListener(l, s.tls))
	s.lab.t.Cleanup(func() { s.api.Close() })
}

// die ends the API's stand-in, and all connections to it.
func (s *server) die() { s.api.Close() }

// keepalive starts keepalived as on a node: the files that bootstrap writes lie where
// only root can write, because it runs no script from elsewhere.
func (s *server) keepalive() {
	t := s.lab.t
	t.Helper()
	place := vip.OnNode()
	place.Dir, place.LAN, place.TLS = "/run/slipway", "eth0", "/run/slipway"
	config, err := vip.Config(s.lab.cluster, s.node, place)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{vip.ConfigName: config, vip.CheckName: vip.Check(place)} {
		if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := "set -e; mount -t tmpfs none /run; mkdir /run/slipway; cp " + s.dir + "/* /run/slipway/; chmod 0644 /run/slipway/" + vip.ConfigName + "; touch /run/copied;" +
		"exec keepalived --dont-fork --vrrp --log-console --no-syslog --log-detail --use-file /run/slipway/" + vip.ConfigName
	s.proc = s.host.Command(context.Background(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c", script)
	s.proc.Stdout, s.proc.Stderr = &s.log, &s.log
	started := s.log.count("Startup complete")
	if err := s.proc.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.halt()
		if t.Failed() {
			t.Logf("keepalived on %s said:\n%s", s.node.Name, s.log.String())
		}
	})
	// The next server's files go to the same directory.
	s.lab.until("keepalived on "+s.node.Name, func() bool { return s.log.count("Startup complete") > started })
}

// halt ends keepalived without a word, as a power cut does.
func (s *server) halt() {
	s.proc.Process.Kill() // its children go with it
	s.proc.Wait()
}

// cable plugs the host in or out.
func (s *server) cable(state string) { s.host.Run(s.lab.t, "ip", "link", "set", "eth0", state) }

// limit is how long anything may take here, however busy the machine is.
const limit = 2 * time.Minute

func (l *lab) until(what string, done func() bool) time.Duration {
	l.t.Helper()
	start := time.Now()
	for !done() {
		if time.Since(start) > limit {
			l.t.Fatalf("%s: not within %s", what, limit)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(start)
}

// answers is the server that answers at the virtual address, or "".
func (l *lab) answers() string {
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+l.cluster.Network.APIVIP.String()+":6443/readyz", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	a, err := l.client.Do(r)
	if err != nil {
		return ""
	}
	defer a.Body.Close()
	name, err := io.ReadAll(a.Body)
	if err != nil {
		return ""
	}
	return string(name)
}

// server is the one of that name.
func (l *lab) server(name string) *server {
	for _, s := range l.servers {
		if s.node.Name == name {
			return s
		}
	}
	l.t.Fatalf("no server %q", name)
	return nil
}

// moves is how often a server has taken the address, over all servers.
func (l *lab) moves() int {
	n := 0
	for _, s := range l.servers {
		n += s.log.count("Entering MASTER STATE")
	}
	return n
}
