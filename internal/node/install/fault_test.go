package install_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
	"github.com/slipway/slipway/internal/node/install/installtest"
)

// A fault is something that goes wrong while a machine is installed. Each either
// leaves a complete install or a disk that does not boot and a receipt that says
// so; none leaves anything in between.
type fault struct {
	name     string
	hurt     func(r *rig)
	complete bool   // the install goes on and ends well
	says     string // what the error or the screen must say
}

func faults() []fault {
	size := func(r *rig) int64 { return theIndex(r.t).Disk.PackedSize() }
	return []fault{
		{"link cut at 10 %", func(r *rig) { r.cut(size(r)/10, 1) }, true, "the link was cut"},
		{"link cut at 50 %", func(r *rig) { r.cut(size(r)/2, 1) }, true, "the link was cut"},
		{"link cut at 90 %", func(r *rig) { r.cut(size(r)*9/10, 1) }, true, "the link was cut"},
		{"link cut again and again", func(r *rig) { r.cut(5<<20, 1000) }, true, "the link was cut"},
		{"link that carries less than a chunk", func(r *rig) { r.cut(1<<20, 1000) }, false, "given up after 6 tries"},
		{"link that goes silent", func(r *rig) { r.silence(size(r) / 2) }, true, "nothing arrives any more"},
		{"server restarted in the middle", func(r *rig) { r.restart(size(r) / 2) }, true, "trying again"},
		{"server gone for good", func(r *rig) { r.vanish(size(r) / 2) }, false, "given up after 6 tries"},
		{"server overloaded", func(r *rig) { r.status(http.StatusServiceUnavailable, machine.PathArtifacts, 3) }, true, "503"},
		{"too many requests", func(r *rig) { r.status(http.StatusTooManyRequests, machine.PathTicket, 3) }, true, "429"},
		{"artifact gone", func(r *rig) { r.status(http.StatusNotFound, machine.PathArtifacts+"disk.raw.zst", 1000) }, false, "404"},
		{"server without Range", func(r *rig) { r.noRange() }, false, "Range"},
		{"byte flipped on the wire", func(r *rig) { r.flipWire(1) }, true, "fetching it again"},
		{"every byte flipped on the wire", func(r *rig) { r.flipWire(1000) }, false, "digest mismatch"},
		{"ticket withdrawn in the middle", func(r *rig) { r.status(http.StatusConflict, machine.PathProgress, 1000) }, false, "409"},
		{"ticket expired in the middle", func(r *rig) { r.status(http.StatusGone, machine.PathProgress, 1000) }, false, "410"},
		{"progress not wanted", func(r *rig) { r.status(http.StatusInternalServerError, machine.PathProgress, 1000) }, true, ""},
		{"receipt lost twice", func(r *rig) { r.status(http.StatusInternalServerError, machine.PathReceipt, 2) }, true, "trying again"},
		{"byte flipped in the slot", func(r *rig) { r.flipDisk(partition(r, "slipway-a") + 8<<20) }, false, "slipway-a"},
		{"byte flipped in the seed", func(r *rig) { r.flipDisk(partition(r, "CIDATA") + 5000) }, false, "CIDATA"},
		{"byte flipped at the start of the ESP", func(r *rig) { r.flipDisk(partition(r, "slipway-esp") + 11) }, false, "gives back something else"},
		{"byte flipped in the partition table", func(r *rig) { r.flipDisk(1024 + 5) }, false, "gives back something else"},
		{"byte flipped in the backup table", func(r *rig) { r.flipDisk(diskSize - 512 + 5) }, false, "gives back something else"},
		{"zeros that are not written", func(r *rig) { r.disks.wrap = func(d install.Disk) install.Disk { return &lazy{Disk: d} } }, false, "gives back something else"},
		{"disk that fails a write", func(r *rig) { r.failWrite(3) }, false, "input/output error"},
		{"disk that does not flush", func(r *rig) { r.disks.wrap = func(d install.Disk) install.Disk { return &unflushed{Disk: d} } }, false, "flush"},
	}
}

func TestFaults(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			f.hurt(r)
			result := r.run()
			said := r.screen.text()
			if result.Err != nil {
				said += "\n" + result.Err.Error()
			}
			if !strings.Contains(said, f.says) {
				t.Errorf("nobody says %q:\n%s", f.says, said)
			}
			if f.complete {
				if result.Err != nil || !result.Acknowledged {
					t.Fatalf("%v\n%s", result.Err, said)
				}
				r.installed()
				return
			}
			if result.Err == nil || result.Receipt.Error == "" || result.Receipt.ReadBack {
				t.Fatalf("it succeeded: %+v", result.Receipt)
			}
			if result.Receipt.Written {
				r.notBootable()
			}
			if got := r.server.Receipts(); result.Acknowledged && (len(got) != 1 || got[0].Error == "") {
				t.Errorf("receipts %+v", got)
			}
		})
	}
}

// A receipt that cannot be delivered leaves a good disk, and the machine knows.
func TestReceiptIsNeverDelivered(t *testing.T) {
	for _, status := range []int{http.StatusInternalServerError, http.StatusGone, http.StatusBadRequest} {
		r := newRig(t)
		r.status(status, machine.PathReceipt, 1000)
		result := r.run()
		if result.Err != nil || result.Acknowledged {
			t.Errorf("%d: %v, acknowledged %v", status, result.Err, result.Acknowledged)
		}
		r.installed()
		if !strings.Contains(strings.Join(result.Summary(), "\n"), "nobody has acknowledged the receipt") {
			t.Errorf("%d: %q", status, result.Summary())
		}
	}
}

func partition(r *rig, name string) int64 {
	r.t.Helper()
	p, ok := theIndex(r.t).Disk.Partition(name)
	if !ok {
		r.t.Fatalf("no partition %s", name)
	}
	return p.Offset
}

func isImage(q *http.Request) bool { return strings.HasSuffix(q.URL.Path, ".zst") }

// cut ends the first answers with the image after n bytes each.
func (r *rig) cut(n int64, times int32) {
	var done atomic.Int32
	r.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if isImage(q) && q.Header.Get("Range") != "" && done.Add(1) <= times {
			w = &cutter{ResponseWriter: w, left: n}
		}
		r.server.ServeHTTP(w, q)
	})
}

// cutter is a link that is cut after so many bytes.
type cutter struct {
	http.ResponseWriter
	left int64
}

func (c *cutter) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		c.left = 0
		panic(http.ErrAbortHandler) // net/http then closes the connection
	}
	c.left -= int64(len(p))
	return c.ResponseWriter.Write(p)
}

// silence keeps the first answer with the image open after n bytes and sends no more.
func (r *rig) silence(n int64) {
	var done atomic.Int32
	r.stall = time.Second
	r.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if isImage(q) && q.Header.Get("Range") != "" && done.Add(1) == 1 {
			w = &stopper{ResponseWriter: w, left: n, stop: func() { <-q.Context().Done() }}
		}
		r.server.ServeHTTP(w, q)
	})
}

// restart kills the server after n bytes of the image, with all its connections,
// and starts it at the same address when the machine has tried twice in vain.
func (r *rig) restart(n int64) {
	address := r.http.Listener.Addr().String()
	var once sync.Once
	first := r.http
	stop := func() {
		go func() {
			first.CloseClientConnections()
			_ = first.Listener.Close()
			for r.screen.count("trying again") < 2 {
				time.Sleep(time.Millisecond)
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				r.t.Error(err)
				return
			}
			second := httptest.NewUnstartedServer(r.server)
			second.Listener.Close()
			second.Listener = l
			second.Start()
			r.t.Cleanup(second.Close)
		}()
	}
	r.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if isImage(q) && q.Header.Get("Range") != "" {
			w = &stopper{ResponseWriter: w, left: n, stop: func() { once.Do(stop) }}
		}
		r.server.ServeHTTP(w, q)
	})
	r.tries = 1000
	r.pause = time.Millisecond
}

// vanish kills the server after n bytes of the image.
func (r *rig) vanish(n int64) {
	r.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if isImage(q) && q.Header.Get("Range") != "" {
			w = &stopper{ResponseWriter: w, left: n, stop: func() {
				_ = r.http.Listener.Close()
				go r.http.CloseClientConnections()
			}}
		}
		r.server.ServeHTTP(w, q)
	})
}

// stopper calls stop after so many bytes and sends nothing more.
type stopper struct {
	http.ResponseWriter
	left int64
	stop func()
}

func (s *stopper) Write(p []byte) (int, error) {
	if s.left -= int64(len(p)); s.left < 0 {
		s.stop()
		panic(http.ErrAbortHandler)
	}
	return s.ResponseWriter.Write(p)
}

// status answers the first requests for a path with a status.
func (r *rig) status(status int, path string, times int32) {
	var done atomic.Int32
	r.server.Fault = func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.HasPrefix(q.URL.Path, path) || done.Add(1) > times {
			return false
		}
		installtest.Refuse(w, status, "as the test wants it")
		return true
	}
}

func (r *rig) noRange() {
	r.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q.Header.Del("Range")
		r.server.ServeHTTP(w, q)
	})
}

// flipWire changes one byte in each of the first answers with the image that are
// long enough to hold a chunk.
func (r *rig) flipWire(times int32) {
	var done atomic.Int32
	r.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if isImage(q) && q.Header.Get("Range") != "" && done.Add(1) <= times {
			w = &flipper{ResponseWriter: w, at: 40000}
		}
		r.server.ServeHTTP(w, q)
	})
}

type flipper struct {
	http.ResponseWriter
	at int
}

func (f *flipper) Write(p []byte) (int, error) {
	if f.at >= 0 && f.at < len(p) {
		p = bytes.Clone(p)
		p[f.at] ^= 4
	}
	f.at -= len(p)
	return f.ResponseWriter.Write(p)
}

// flipDisk is a disk that changes one bit of what is written at an offset.
func (r *rig) flipDisk(at int64) {
	r.disks.wrap = func(d install.Disk) install.Disk { return &flipping{Disk: d, at: at} }
}

type flipping struct {
	install.Disk
	at int64
}

func (f *flipping) WriteAt(p []byte, off int64) (int, error) {
	if f.at >= off && f.at < off+int64(len(p)) {
		p = bytes.Clone(p)
		p[f.at-off] ^= 1
	}
	return f.Disk.WriteAt(p, off)
}

// lazy is a disk that says it has zeroed, and has not, beyond the first gigabyte's
// worth of what matters at the ends.
type lazy struct{ install.Disk }

func (l *lazy) Zero(off, n int64) error {
	if off == 0 || off+n == diskSize {
		return l.Disk.Zero(off, n)
	}
	return nil
}

type unflushed struct{ install.Disk }

func (u *unflushed) Flush() error { return errors.New("flush: input/output error") }

// failWrite makes the n-th write fail, and none before or after.
func (r *rig) failWrite(n int32) {
	r.disks.wrap = func(d install.Disk) install.Disk { return &failing{Disk: d, left: n} }
}

type failing struct {
	install.Disk
	left int32
}

func (f *failing) WriteAt(p []byte, off int64) (int, error) {
	if atomic.AddInt32(&f.left, -1) == 0 {
		return 0, errors.New("input/output error")
	}
	return f.Disk.WriteAt(p, off)
}

var _ io.WriterAt = (*failing)(nil)
