package pxebench

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/vm-test/rounds"
)

// errand is what clients fetch by HTTP, each over one connection that is kept.
type errand struct {
	name    string
	file    string
	part    int // bytes asked for by Range, one part after the other; 0: the whole file
	clients int
	each    int // requests of a client
	unit    string
}

// errands are what installers and boot loaders do.
func errands() []errand {
	n := choose(8, 1)
	return []errand{
		{"HTTP, a file of 100 MiB", kernel, 0, 1, n, "MB"},
		{"HTTP, a file of 100 MiB, 8 clients", kernel, 0, 8, n, "MB"},
		{"HTTP, parts of 4 MiB by Range, 8 clients", kernel, 4 << 20, 8, 25 * n, "MB"},
		{"HTTP, a boot loader of 256 KiB, 8 clients", small, 0, 8, 400 * n, "MB"},
	}
}

// httpRatio is how far pxed may be behind nginx.
const httpRatio = 0.8

// TestBenchHTTP fetches the same files from pxed and nginx. The clients take answers
// without copying them (tcp(7), MSG_TRUNC), so that the servers are measured and not
// they; that the bytes are right is checked once before.
func TestBenchHTTP(t *testing.T) {
	sizes := map[string]int{kernel: choose(100<<20, 8<<20), small: 256 << 10}
	y := newYard(t, sizes)
	names, all := servers(y.pxed(), y.nginx())
	if len(names) < 2 {
		return
	}
	for _, name := range names {
		same(t, y, all[name])
	}
	var tables []*rounds.Table
	for _, e := range errands() {
		tables = append(tables, &rounds.Table{
			Title: e.name, Columns: []rounds.Column{{Name: e.unit + "/s", Digits: 0}, {Name: "CPU ms/GB", Digits: 0}}, Names: names,
			Aims: []rounds.Aim{{Column: e.unit + "/s", To: "nginx", Least: httpRatio}},
		})
	}
	for round := range choose(*times, 1) {
		for i, e := range errands() {
			for _, name := range tables[i].Order(round) {
				tables[i].Add(name, run(t, y, all[name], e, sizes[e.file])...)
			}
		}
	}
	report(t, "http", tables...)
}

// run measures one round: bytes a second and the server's processor time.
func run(t *testing.T, y *yard, s *server, e errand, size int) []float64 {
	t.Helper()
	before, start := s.cpu(), time.Now()
	var clients sync.WaitGroup
	for range e.clients {
		clients.Go(func() {
			if err := errandOf(t.Context(), y, s, e, size); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	took, used := time.Since(start), s.cpu()-before
	length := size
	if e.part > 0 {
		length = e.part
	}
	bytes := float64(e.clients) * float64(e.each) * float64(length)
	return []float64{bytes / 1e6 / took.Seconds(), used.Seconds() * 1000 / (bytes / 1e9)}
}

// errandOf is one client.
func errandOf(ctx context.Context, y *yard, s *server, e errand, size int) error {
	open, err := y.client.Dial(ctx, "tcp4", s.addr.String()+":8080")
	if err != nil {
		return err
	}
	defer open.Close()
	conn := open.(*net.TCPConn)
	conn.SetDeadline(time.Now().Add(2 * time.Minute))
	for i := range e.each {
		ranged := ""
		want := size
		if e.part > 0 {
			at := i * e.part % (size - e.part + 1)
			ranged, want = fmt.Sprintf("Range: bytes=%d-%d\r\n", at, at+e.part-1), e.part
		}
		if err := take(conn, e.file, ranged, want); err != nil {
			return fmt.Errorf("%s, request %d: %w", s.name, i, err)
		}
	}
	return nil
}

// take asks for a file and lets the kernel throw away what comes.
func take(conn *net.TCPConn, file, ranged string, want int) error {
	if _, err := fmt.Fprintf(conn, "GET %s%s HTTP/1.1\r\nHost: bench\r\n%s\r\n", machine.PathArtifacts, file, ranged); err != nil {
		return err
	}
	head := make([]byte, 4096)
	n, end := 0, -1
	for end < 0 {
		m, err := conn.Read(head[n:])
		if err != nil {
			return err
		}
		n += m
		end = strings.Index(string(head[:n]), "\r\n\r\n")
	}
	answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(head[:end+4]))), nil)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode/100 != 2 || answer.ContentLength != int64(want) {
		return fmt.Errorf("%s, %d bytes", answer.Status, answer.ContentLength)
	}
	return discard(conn, want-(n-end-4))
}

// discard takes n bytes.
func discard(conn *net.TCPConn, n int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for n > 0 {
		var got int
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			got, _, failed = unix.Recvfrom(int(fd), buf[:min(n, len(buf))], unix.MSG_TRUNC)
			return failed != unix.EAGAIN
		})
		if err != nil || failed != nil {
			return fmt.Errorf("%d bytes before the end: %w, %w", n, err, failed)
		}
		if got == 0 {
			return io.ErrUnexpectedEOF
		}
		n -= got
	}
	return nil
}

// same checks what a server serves, once it is there.
func same(t *testing.T, y *yard, s *server) {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, DialContext: y.client.Dial}
	defer transport.CloseIdleConnections()
	c := http.Client{Transport: transport, Timeout: time.Minute}
	for _, file := range []string{kernel, small} {
		var answer *http.Response
		var err error
		for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
			if answer, err = c.Get("http://" + s.addr.String() + ":8080" + machine.PathArtifacts + file); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		got, want := sha256.New(), sha256.Sum256(y.contents[file])
		n, err := io.Copy(got, answer.Body)
		answer.Body.Close()
		if err != nil || string(got.Sum(nil)) != string(want[:]) {
			t.Fatalf("%s serves something else as %s: %s, %d bytes, %v", s.name, file, answer.Status, n, err)
		}
	}
}
