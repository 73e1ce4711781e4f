package httpd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
)

func (l *lab) file(method, name string, headers ...string) (*http.Response, []byte) {
	l.Helper()
	r, err := http.NewRequestWithContext(l.Context(), method, l.url+machine.PathArtifacts+name, nil)
	if err != nil {
		l.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := l.http.Do(r)
	if err != nil {
		l.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		l.Fatal(err)
	}
	return answer, body
}

func TestArtifacts(t *testing.T) {
	l := newLab(t)
	for name, data := range buildtest.Contents() {
		if strings.HasPrefix(name, "seeds/") {
			continue
		}
		sum := sha256.Sum256(data)
		tag := `"` + hex.EncodeToString(sum[:]) + `"`
		a, body := l.file("GET", name)
		if a.StatusCode != http.StatusOK || !bytes.Equal(body, data) || a.Header.Get("ETag") != tag {
			t.Errorf("GET %s: %s, %d bytes, %v", name, a.Status, len(body), a.Header)
		}
		if strings.HasSuffix(name, ".efi") && a.Header.Get("Content-Type") != "application/efi" {
			t.Errorf("%s: %v", name, a.Header)
		}
		a, body = l.file("HEAD", name)
		if a.StatusCode != http.StatusOK || len(body) != 0 || a.ContentLength != int64(len(data)) || a.Header.Get("Accept-Ranges") != "bytes" {
			t.Errorf("HEAD %s: %s, %d, %v", name, a.Status, a.ContentLength, a.Header)
		}
		a, _ = l.file("GET", name, "If-None-Match", tag)
		if a.StatusCode != http.StatusNotModified {
			t.Errorf("%s with its tag: %s", name, a.Status)
		}
	}
	if a, body := l.file("GET", artifact.IndexName); a.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(artifact.Format)) {
		t.Errorf("index: %s", a.Status)
	}
}

// Resuming after a cut, at any place, gives the rest; a range of a file that has
// changed meanwhile gives the whole.
func TestRanges(t *testing.T) {
	l := newLab(t)
	const name = "netboot/vmlinuz"
	data := buildtest.Contents()[name]
	for _, c := range []struct {
		spec   string
		status int
		want   []byte
	}{
		{"bytes=0-0", 206, data[:1]}, {"bytes=100-199", 206, data[100:200]}, {"bytes=-5", 206, data[len(data)-5:]},
		{"bytes=279999-", 206, data[279999:]}, {"bytes=0-99999999", 206, data}, {"bytes=280000-", 416, nil}, {"bytes=9-3", 416, nil},
		{"chunks=1-2", 416, nil},
	} {
		a, body := l.file("GET", name, "Range", c.spec)
		if a.StatusCode != c.status || c.want != nil && !bytes.Equal(body, c.want) {
			t.Errorf("%s: %s, %d bytes", c.spec, a.Status, len(body))
		}
	}
	a, body := l.file("GET", name, "Range", "bytes=100-199", "If-Range", `"another"`)
	if a.StatusCode != http.StatusOK || len(body) != len(data) {
		t.Errorf("a range of another file: %s, %d bytes", a.Status, len(body))
	}
}

func TestNothingElseIsServed(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{
		"", "netboot", "netboot/", "netboot/ipxe/", "seeds/n1/user-data", "..%2f..%2fetc/passwd", "%2e%2e/%2e%2e/etc/passwd", "index.json%00", "boot-your-own-disk",
	} {
		a, body := l.file("GET", name)
		if a.StatusCode != http.StatusNotFound && a.StatusCode != http.StatusBadRequest || strings.Contains(string(body), "root:") {
			t.Errorf("%q: %s %s", name, a.Status, body)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if a, _ := l.file(method, "netboot/vmlinuz"); a.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s", method, a.Status)
		}
	}
}

func TestConnectionIsKept(t *testing.T) {
	l := newLab(t)
	reused := 0
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}}
	for range 5 {
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "GET", l.url+machine.PathArtifacts+"netboot/vmlinuz", nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := l.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, a.Body)
		a.Body.Close()
	}
	if reused != 4 {
		t.Errorf("%d of 4 requests came over the kept connection", reused)
	}
}

// What is around the file may cost, the file itself goes from the page cache to
// the socket: the writer of the server must be reached through all wrappers.
func TestFileReachesSendfile(t *testing.T) {
	probe := &readerFrom{ResponseWriter: discard{http.Header{}}}
	rec := &recorder{ResponseWriter: probe, status: http.StatusOK}
	b := buildtest.Open(t, buildtest.Contents())
	s := New(Options{Build: b, Log: (&logBook{}).logger(), Counter: silent{}})
	r, err := http.NewRequest("GET", machine.PathArtifacts+"netboot/vmlinuz", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.artifacts(rec, r)
	if !probe.file {
		t.Error("the file was copied through a buffer")
	}
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

type readerFrom struct {
	http.ResponseWriter
	file bool
}

func (r *readerFrom) ReadFrom(src io.Reader) (int64, error) {
	if l, ok := src.(*io.LimitedReader); ok {
		_, r.file = l.R.(*os.File)
	}
	return io.Copy(io.Discard, src)
}

// A client that sends headers without end is cut off.
func TestHeadersAreBounded(t *testing.T) {
	l := newLab(t)
	a, _ := l.file("GET", "netboot/vmlinuz", "X-Long", strings.Repeat("a", 64<<10))
	if a.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s", a.Status)
	}
}
