package httpd

import (
	"errors"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/build"
)

// artifacts serves the files of the verified build by their names in the index,
// and nothing else: no directories, no seeds, no file that is not in the index.
// http.ServeContent knows HEAD, Range, If-Range and If-None-Match, and passes the
// file to the kernel's sendfile.
func (s *Server) artifacts(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, machine.PathArtifacts)
	f, file, err := s.build.Open(name)
	switch {
	case errors.Is(err, build.ErrUnknown):
		s.refuse(w, r, refusal{status: http.StatusNotFound, code: "not-found", text: "the build has no file of this name to serve"})
		return
	case err != nil:
		s.refuse(w, r, refusal{
			status: http.StatusServiceUnavailable, code: "build-changed", text: err.Error(),
			hint: "the build was changed in place while it was served: build it again and restart pxed",
		})
		return
	}
	defer f.Close()
	h := w.Header()
	h.Set("ETag", `"`+file.Digest.Hex()+`"`)
	h.Set("Content-Type", contentType(name))
	h.Set("Cache-Control", "no-cache") // may be kept, must be asked about
	s.extend(w, file.Size)
	http.ServeContent(w, r, name, s.build.Time(), f)
}

// contentType tells UEFI's HTTP boot what it loads (UEFI specification 24.7.3.2);
// it does not go by the name alone everywhere.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".efi":
		return "application/efi"
	case ".json":
		return "application/json"
	default:
		return "application/octet-stream"
	}
}

// slowest is the least speed, in bytes a second, at which a file may be taken
// before the connection is given up: a tenth of the slowest Ethernet.
const slowest = 125_000

// extend gives a large answer the time that a slow link needs; the time-out of
// the server is for small ones.
func (s *Server) extend(w http.ResponseWriter, size int64) {
	limit := answerTime + time.Duration(size/slowest)*time.Second
	// A writer without deadlines, in tests, has nothing to extend.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
}
