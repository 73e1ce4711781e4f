package fetch_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/pin"
)

// archive is a package archive on 127.0.0.1 with the faults of real ones. A fault
// is asked for each request; it returns true when it has answered itself.
type archive struct {
	*httptest.Server
	files map[string][]byte
	fault func(w http.ResponseWriter, r *http.Request, n int) bool

	mu       sync.Mutex
	requests []string // "path range"
	at, most int      // requests at once
}

func newArchive(t *testing.T, files map[string][]byte) *archive {
	t.Helper()
	a := &archive{files: files}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.CloseClientConnections)
	t.Cleanup(a.Close)
	return a
}

func (a *archive) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
	n := len(a.requests)
	a.at++
	a.most = max(a.most, a.at)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.at--
		a.mu.Unlock()
	}()
	if a.fault != nil && a.fault(w, r, n) {
		return
	}
	body, ok := a.files[strings.TrimPrefix(r.URL.Path, "/debian/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func (a *archive) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.requests...)
}

// cut answers with the length of all of body and sends only its beginning.
func cut(w http.ResponseWriter, body []byte, after int) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body[:after])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// content is size bytes of text without a short period.
func content(name string, size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		b.WriteString(name)
		b.WriteString(strconv.Itoa(i))
	}
	return b.Bytes()[:size]
}

// lockOf pins files as one package set.
func lockOf(files map[string][]byte) *pin.Lock {
	set := pin.Set{Name: pin.SetRootfs}
	for path, b := range files {
		name, rest, _ := strings.Cut(strings.TrimPrefix(path, "pool/"), "_")
		version, _, _ := strings.Cut(rest, "_")
		set.Packages = append(set.Packages, pin.Package{Name: name, Version: version, Arch: "amd64", Archive: pin.ArchiveDebian, Path: path, Size: int64(len(b)), Digest: digest.Of(b)})
	}
	return &pin.Lock{Debian: pin.Debian{Sets: []pin.Set{set}}}
}

func openCache(t *testing.T) *cas.Cache {
	t.Helper()
	c, err := cas.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fetcher asks a, and loses no time between tries.
func (a *archive) fetcher(c *cas.Cache) fetch.Fetcher {
	return fetch.Fetcher{
		Cache: c, Profile: "profiles/x.yaml", Attempts: 3, Pause: time.Millisecond,
		Archives: func(context.Context) (map[string]string, error) {
			return map[string]string{pin.ArchiveDebian: a.URL + "/debian"}, nil
		},
	}
}
