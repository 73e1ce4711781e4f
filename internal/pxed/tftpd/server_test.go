package tftpd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	tftp "github.com/pin/tftp/v3"

	"github.com/slipway/slipway/vm-test/netns"
)

// bench is a server on a bridge and a client host beside it.
type bench struct {
	client *netns.Host
	files  fstest.MapFS
	ended  chan Transfer
	server *Server
}

func (b *bench) TFTP(t Transfer) { b.ended <- t }

var own = netip.MustParsePrefix("10.69.0.1/24")

func serve(t *testing.T, c Config) *bench {
	t.Helper()
	b := &bench{client: netns.NewHost(t), ended: make(chan Transfer, 100), files: fstest.MapFS{}}
	for _, size := range []int{0, 1, 511, 512, 513, 1468, 15360, 30720, 61440, 245760, 284672, 1 << 20} {
		b.files[fmt.Sprintf("boot/%d", size)] = &fstest.MapFile{Data: noise(size)}
	}
	var names []string
	for n := range b.files {
		names = append(names, n)
	}
	b.files["boot/secret"] = &fstest.MapFile{Data: []byte("not served")}
	bridge := netns.Bridge(t, own.String())
	netns.Plug(t, bridge, b.client, "52:54:00:69:00:02", "10.69.0.2/24")
	c.Interfaces = []Interface{{Name: bridge, Server: own.Addr()}}
	c.Files = NewDirectory(b.files, names...)
	c.Watcher, c.Log = b, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	var err error
	if b.server, err = Listen(ctx, c); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.server.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return b
}

func noise(size int) []byte {
	r := rand.New(rand.NewPCG(uint64(size), 7))
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// end waits for the end of the next transfer.
func (b *bench) end(t *testing.T) Transfer {
	t.Helper()
	select {
	case got := <-b.ended:
		return got
	case <-time.After(30 * time.Second):
		t.Fatal("no transfer ended")
		return Transfer{}
	}
}

// Clients that people and machines have, each with the options it knows.
func TestForeignClients(t *testing.T) {
	b := serve(t, Config{})
	for name, command := range map[string]string{
		"curl plain":        "curl -sS --tftp-no-options -o OUT tftp://10.69.0.1/boot/SIZE",
		"curl blksize":      "curl -sS --tftp-blksize 1400 -o OUT tftp://10.69.0.1/boot/SIZE",
		"curl beyond MTU":   "curl -sS --tftp-blksize 65464 -o OUT tftp://10.69.0.1/boot/SIZE",
		"busybox":           "busybox tftp -g -b 1400 -l OUT -r boot/SIZE 10.69.0.1",
		"tftp-hpa":          "tftp -m binary 10.69.0.1 -c get boot/SIZE OUT",
		"atftp windowsize":  "atftp --option 'blksize 1428' --option 'windowsize 16' --get -r boot/SIZE -l OUT 10.69.0.1",
		"atftp all options": "atftp --option 'blksize 700' --option 'windowsize 3' --option 'timeout 2' --option 'tsize 0' --get -r boot/SIZE -l OUT 10.69.0.1",
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{0, 1, 511, 512, 513, 1468, 284672} {
				if size == 0 && strings.HasPrefix(name, "curl b") {
					continue // curl itself fails on an empty file after an OACK
				}
				out := filepath.Join(t.TempDir(), "out")
				b.client.Run(t, "sh", "-c", strings.NewReplacer("SIZE", fmt.Sprint(size), "OUT", out).Replace(command))
				got, err := os.ReadFile(out)
				if err != nil && (size > 0 || !os.IsNotExist(err)) {
					t.Fatal(err)
				}
				if !bytes.Equal(got, noise(size)) {
					t.Errorf("%d bytes came as %d others", size, len(got))
				}
				if end := b.end(t); end.Outcome != Sent || end.Err != nil || end.Bytes != size {
					t.Errorf("%d bytes: %+v", size, end)
				}
			}
		})
	}
}

// A library's client in this namespace: many at once, each in full.
func TestManyAtOnce(t *testing.T) {
	serve(t, Config{Limit: hostLimit})
	var running sync.WaitGroup
	for range hostLimit {
		running.Go(func() {
			c, err := tftp.NewClient("10.69.0.1:69")
			if err != nil {
				t.Error(err)
				return
			}
			c.SetBlockSize(1400)
			from, err := c.Receive("/boot/1048576", "octet")
			if err != nil {
				t.Error(err)
				return
			}
			var got bytes.Buffer
			if _, err := from.WriteTo(&got); err != nil && err != io.EOF {
				t.Error(err)
			}
			if !bytes.Equal(got.Bytes(), noise(1<<20)) {
				t.Errorf("1 MiB came as %d other bytes", got.Len())
			}
		})
	}
	running.Wait()
}

func TestRefusals(t *testing.T) {
	b := serve(t, Config{})
	for _, c := range []struct{ request, want, why string }{
		{rrq("boot/none"), "\x00\x05\x00\x01", "no such file"},
		{rrq("boot/secret"), "\x00\x05\x00\x01", "no such file"},
		{rrq("boot"), "\x00\x05\x00\x01", "no such file"},
		{rrq("../etc/passwd"), "\x00\x05\x00\x02", "leads out"},
		{rrq("boot/../../etc/passwd"), "\x00\x05\x00\x02", "leads out"},
		{rrq("/../boot/1"), "\x00\x05\x00\x02", "leads out"},
		{rrq("..\\boot\\1"), "\x00\x05\x00\x02", "leads out"},
		{"\x00\x02boot/1\x00octet\x00", "\x00\x05\x00\x02", "only reads"},
		{"\x00\x01boot/1\x00netascii\x00", "\x00\x05\x00\x04", "octet"},
		{"\x00\x01boot/1\x00octet", "\x00\x05\x00\x04", "cut off"},
		{"\x00\x01\x00octet\x00", "\x00\x05\x00\x04", "names no file"},
		{"\x00\x04\x00\x01", "\x00\x05\x00\x04", "does not start"},
		{"\x00", "\x00\x05\x00\x04", "no request"},
	} {
		k := dial(t)
		k.write(t, c.request)
		if got := k.read(t); !strings.HasPrefix(got, c.want) || !strings.Contains(got, c.why) {
			t.Errorf("%q: got %q", c.request, got)
		}
		if end := b.end(t); end.Outcome != Refused || end.Err == nil {
			t.Errorf("%q: %+v", c.request, end)
		}
	}
}

func TestProbeIsNoFailure(t *testing.T) {
	b := serve(t, Config{})
	k := dial(t)
	k.write(t, rrq("boot/284672", "tsize", "0", "blksize", "1468"))
	if got := k.read(t); got != "\x00\x06tsize\x00284672\x00blksize\x001468\x00" {
		t.Fatalf("got %q", got)
	}
	k.write(t, "\x00\x05\x00\x08User aborted the transfer\x00")
	if end := b.end(t); end.Outcome != Probed || end.Err != nil {
		t.Errorf("got %+v", end)
	}
}

// Ending the server breaks off a transfer whose client has gone silent.
func TestStopDoesNotWaitForClients(t *testing.T) {
	b := serve(t, Config{})
	k := dial(t)
	k.write(t, rrq("boot/284672", "timeout", "255"))
	k.read(t)
	t.Cleanup(func() {
		if end := b.end(t); end.Outcome != Failed {
			t.Errorf("got %+v", end)
		}
	})
}

func TestListenNamesWhoHasThePort(t *testing.T) {
	b := serve(t, Config{})
	_, err := Listen(t.Context(), Config{Interfaces: []Interface{{Name: b.server.cfg.Interfaces[0].Name, Server: own.Addr()}}, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("tftpd.test (pid %d)", os.Getpid())) {
		t.Errorf("got %v", err)
	}
}
