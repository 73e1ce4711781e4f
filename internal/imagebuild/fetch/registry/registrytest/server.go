// Package registrytest is a registry on 127.0.0.1, for tests: images for several
// platforms, behind tokens that anybody gets.
package registrytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway/slipway/internal/digest"
)

// Server serves what was added. Its references begin with Host.
type Server struct {
	Host  string
	Login bool // asks for a name and a password

	mu       sync.Mutex
	content  map[string][]byte // path to content
	requests []string
}

const token = "Bearer for-anybody"

// New starts a registry that ends with the test.
func New(t *testing.T) *Server {
	t.Helper()
	s := &Server{content: map[string][]byte{}}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.Host = strings.TrimPrefix(web.URL, "http://")
	return s
}

type entry struct {
	MediaType string            `json:"mediaType"`
	Digest    digest.Digest     `json:"digest"`
	Size      int               `json:"size"`
	Platform  map[string]string `json:"platform,omitempty"`
}

// Add adds an image for amd64 with these layers, and one for arm64 beside it, and
// returns the reference and the digest of the manifest for amd64.
func (s *Server) Add(t *testing.T, repository, tag string, layers ...string) (string, digest.Digest) {
	t.Helper()
	var list []entry
	var amd64 digest.Digest
	for _, arch := range []string{"arm64", "amd64"} {
		m := map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
			"config": s.blob(repository, `{"architecture":"`+arch+`"}`)}
		var blobs []entry
		for _, l := range layers {
			if arch != "amd64" {
				l = arch + l
			}
			blobs = append(blobs, s.blob(repository, l))
		}
		m["layers"] = blobs
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		d := digest.Of(data)
		s.put(repository+"/manifests/"+d.String(), data)
		list = append(list, entry{"application/vnd.oci.image.manifest.v1+json", d, len(data), map[string]string{"os": "linux", "architecture": arch}})
		amd64 = d
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": list})
	if err != nil {
		t.Fatal(err)
	}
	s.put(repository+"/manifests/"+tag, index)
	return s.Host + "/" + repository + ":" + tag, amd64
}

func (s *Server) blob(repository, content string) entry {
	d := digest.Of([]byte(content))
	s.put(repository+"/blobs/"+d.String(), []byte(content))
	return entry{"application/vnd.oci.image.layer.v1.tar", d, len(content), nil}
}

func (s *Server) put(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content["/v2/"+path] = data
}

// Spoil changes what is served for a blob or manifest, in every repository.
func (s *Server) Spoil(d digest.Digest, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path := range s.content {
		if strings.HasSuffix(path, "/"+d.String()) {
			s.content[path] = []byte(content)
		}
	}
}

// Requests counts the downloads whose path contains part.
func (s *Server) Requests(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.requests), func(r string) bool { return !strings.Contains(r, part) }))
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/token" {
		if r.URL.Query().Get("service") != "test" || !strings.HasSuffix(r.URL.Query().Get("scope"), ":pull") {
			http.Error(w, "for what?", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"token":"for-anybody"}`)
		return
	}
	if s.Login || r.Header.Get("Authorization") != token {
		scheme := fmt.Sprintf(`Bearer realm="http://%s/token",service="test",scope="x"`, s.Host)
		if s.Login {
			scheme = `Basic realm="x"`
		}
		w.Header().Set("WWW-Authenticate", scheme)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	data, ok := s.content[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodGet {
		s.requests = append(s.requests, r.URL.Path)
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}
