package labcluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/vm-test/labbin"
	"github.com/slipway/slipway/vm-test/netns"
)

// TestMain builds k3s outside of the namespace, from which no module can be had.
func TestMain(m *testing.M) {
	if _, err := labbin.Build(context.Background(), "k3s"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(netns.Main(m))
}

// waitTime bounds every wait; on an idle machine a server is up in ten seconds.
const waitTime = 5 * time.Minute

// secret is the short token of the cluster.
const secret = "a-secret-of-the-lab"

// server is a host that runs `k3s server` without a kubelet.
type server struct {
	name, ip, dir string
	host          *netns.Host
	bin           string
	cmd           *exec.Cmd
	over          chan struct{} // closed when it has ended
}

// newServers makes hosts n1, n2, ... on one bridge.
func newServers(t *testing.T, n int) []*server {
	t.Helper()
	bin, err := labbin.Build(t.Context(), "k3s")
	if err != nil {
		t.Fatal(err)
	}
	bridge := netns.Bridge(t, "192.0.2.254/24")
	var out []*server
	for i := range n {
		s := &server{name: fmt.Sprintf("n%d", i+1), ip: fmt.Sprintf("192.0.2.%d", i+1), dir: t.TempDir(), host: netns.NewHost(t), bin: bin}
		netns.Plug(t, bridge, s.host, fmt.Sprintf("02:00:00:00:00:%02x", i+1), s.ip+"/24")
		out = append(out, s)
	}
	return out
}

func (s *server) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// configure writes the configuration: what all servers have, then lines of its own.
func (s *server) configure(t *testing.T, lines ...string) {
	t.Helper()
	text := strings.Join(append([]string{
		"node-name: " + s.name, "node-ip: " + s.ip, "data-dir: " + s.path("data"), "write-kubeconfig: " + s.path("k3s.yaml"),
		"flannel-backend: none", "disable-kube-proxy: true", "disable-network-policy: true", "disable-helm-controller: true",
		"secrets-encryption: true", "disable-agent: true", "disable: [traefik, servicelb, local-storage]", "tls-san: [api.test]",
	}, lines...), "\n")
	if err := os.WriteFile(s.path("config.yaml"), []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start starts the server with its configuration.
func (s *server) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(s.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd = s.host.Command(t.Context(), s.bin, "server", "--config", s.path("config.yaml"))
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	s.over = over
	go func(cmd *exec.Cmd) {
		cmd.Wait()
		close(over)
	}(s.cmd)
	t.Cleanup(func() { s.kill() })
}

// up starts the server and returns when its API answers.
func (s *server) up(t *testing.T) {
	t.Helper()
	s.start(t)
	s.until(t, "its API is ready", func() error {
		status, body := s.ask(t, "GET", "/readyz", "")
		if status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
}

// kill ends the server as a loss of power would.
func (s *server) kill() {
	s.cmd.Process.Kill() // it is ours; an error means that it has ended
	<-s.over
}

// stop ends the server as systemd does, and fails when it does not end well.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.ended(t); code != 0 {
		t.Errorf("%s ended with %d when it was told to end\n%s", s.name, code, s.said(t))
	}
}

// ended waits until the server has ended by itself and returns its exit code.
func (s *server) ended(t *testing.T) int {
	t.Helper()
	select {
	case <-s.over:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(waitTime):
		t.Fatalf("%s does not end\n%s", s.name, s.said(t))
		return 0
	}
}

// refuses starts the server, which must end with an error that says so, and forgets
// what it said.
func (s *server) refuses(t *testing.T, want string) {
	t.Helper()
	s.start(t)
	code := s.ended(t)
	said := s.said(t)
	if code == 0 || !strings.Contains(said, want) {
		t.Errorf("%s ended with %d and did not say %q:\n%s", s.name, code, want, said)
	}
	if err := os.Remove(s.path("log")); err != nil {
		t.Fatal(err)
	}
}

// said are the server's own lines of its log, at the end of it.
func (s *server) said(t *testing.T) string {
	t.Helper()
	const enough = 40 // lines
	log, err := os.ReadFile(s.path("log"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.SplitSeq(string(log), "\n") {
		if strings.HasPrefix(line, "time=") || strings.HasPrefix(line, "panic") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-enough):], "\n")
}

func (s *server) until(t *testing.T, what string, f func() error) {
	t.Helper()
	for deadline := time.Now().Add(waitTime); ; time.Sleep(200 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-s.over:
			t.Fatalf("%s: %s: it has ended: %v\n%s", s.name, what, err, s.said(t))
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s: not within %s: %v\n%s", s.name, what, waitTime, err, s.said(t))
		}
	}
}

// wipe removes all that the server has on its disk.
func (s *server) wipe(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(s.path("data")); err != nil {
		t.Fatal(err)
	}
}

// client trusts an authority and shows a certificate, all files below server/tls.
func (s *server) client(t *testing.T, ca, cert string) (*http.Client, error) {
	t.Helper()
	tlsDir := s.path("data", "server", "tls")
	text, err := os.ReadFile(filepath.Join(tlsDir, ca))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	pair, err := tls.LoadX509KeyPair(filepath.Join(tlsDir, cert+".crt"), filepath.Join(tlsDir, cert+".key"))
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout:   20 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}},
	}, nil
}

// ask asks the server's API as its administrator; 0 means that there is no answer.
func (s *server) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	c, err := s.client(t, "server-ca.crt", "client-admin")
	if err != nil {
		return 0, err.Error()
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.ip+":6443"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// object asks for what must be there.
func (s *server) object(t *testing.T, method, path, body string) object {
	t.Helper()
	status, text := s.ask(t, method, path, body)
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil || status/100 != 2 {
		t.Fatalf("%s: %s %s: %d %s", s.name, method, path, status, text)
	}
	return o
}

// object is what the tests want to know of objects.
type object struct {
	Metadata struct {
		UID         string
		Annotations map[string]string
		Labels      map[string]string
		Finalizers  []string
	}
	Data      map[string]string
	Endpoints []struct{ Addresses []string }
}

// member is a member of etcd.
type member struct {
	Name      string
	PeerURLs  []string
	IsLearner bool
}

// members asks the server's etcd for its members.
func (s *server) members(t *testing.T) []member {
	t.Helper()
	var list struct{ Members []member }
	s.etcd(t, "/v3/cluster/member/list", "{}", &list)
	return list.Members
}

func (s *server) etcd(t *testing.T, path, body string, v any) {
	t.Helper()
	c, err := s.client(t, "etcd/server-ca.crt", "etcd/client")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Post("https://"+s.ip+":2379"+path, "application/json", bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(v); err != nil {
		t.Fatal(err)
	}
}

// tool runs a command of k3s on the host and returns what it printed.
func (s *server) tool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := s.host.Command(t.Context(), s.bin, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.path("k3s.yaml"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: k3s %s: %v\n%s", s.name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
