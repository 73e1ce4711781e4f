package httpd

import (
	"fmt"
	"net/http"
	"strings"
)

// unknown answers for every path, or method of a path, that nothing else answers.
// It finds out which methods there would have been by asking for each.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := s.mux.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		s.refuse(w, r, refusal{http.StatusNotFound, "not-found", fmt.Sprintf("there is nothing at %.200q", r.URL.Path), "the paths are in docs/PXED.md"})
		return
	}
	methods := strings.Join(allowed, ", ")
	w.Header().Set("Allow", methods)
	s.refuse(w, r, refusal{http.StatusMethodNotAllowed, "method", fmt.Sprintf("%.20s is no way to ask for %.200q", r.Method, r.URL.Path), "use " + methods})
}
