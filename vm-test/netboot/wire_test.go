package netboot

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/machine"
)

// wire carries HTTP between an installer and pxed, and does something when a
// certain byte of the image comes by.
type wire struct {
	url   string
	image artifact.File
	mu    sync.Mutex
	hooks []*hook
}

// hook is what happens at a byte of the compressed image.
type hook struct {
	at    int64
	times int // how often it still happens; negative: always
	do    func(*byte)
}

const wirePort = 9090

func newWire(t *testing.T, s *server) *wire {
	t.Helper()
	target, err := url.Parse(s.url())
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(s.at, wirePort).String()
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{url: "http://" + at}
	w.image, _ = s.lab.index.One(artifact.RoleDiskZstd)
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: w.listen,
		FlushInterval:  -1,
		ErrorLog:       log.New(io.Discard, "", 0), // cut links are the point
	}
	web := &http.Server{Handler: proxy}
	go web.Serve(listener) // ends when it is closed
	t.Cleanup(func() { web.Close() })
	return w
}

// on sets a hook at a part of the image, in percent of what is sent of it.
func (w *wire) on(percent, times int, do func(*byte)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hooks = append(w.hooks, &hook{w.image.Size * int64(percent) / 100, times, do})
}

// through is an order whose installer talks over this wire.
func (w *wire) through(words string) string {
	var out []string
	for _, word := range strings.Fields(words) {
		if strings.HasPrefix(word, machine.WordServer+"=") {
			word = machine.WordServer + "=" + w.url
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// listen looks at answers that hold a part of the image.
func (w *wire) listen(r *http.Response) error {
	if r.Request.Method != http.MethodGet || !strings.HasSuffix(r.Request.URL.Path, "/"+w.image.Name) {
		return nil
	}
	at := int64(0)
	if from, ok := strings.CutPrefix(r.Header.Get("Content-Range"), "bytes "); ok {
		from, _, _ = strings.Cut(from, "-")
		var err error
		if at, err = strconv.ParseInt(from, 10, 64); err != nil {
			return err
		}
	}
	r.Body = &tapped{ReadCloser: r.Body, wire: w, at: at}
	return nil
}

// tapped is an answer that is looked at.
type tapped struct {
	io.ReadCloser
	wire *wire
	at   int64
}

func (b *tapped) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for _, h := range b.wire.due(b.at, b.at+int64(n)) {
		h.do(&p[h.at-b.at])
	}
	b.at += int64(n)
	return n, err
}

// due are the hooks between two bytes of the image that happen now.
func (w *wire) due(from, to int64) (out []hook) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hooks {
		if h.times == 0 || h.at < from || h.at >= to {
			continue
		}
		h.times--
		out = append(out, *h)
	}
	return out
}
