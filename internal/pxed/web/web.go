// Package web is pxed's page: machines, where their installs are, what they
// consist of, and why one is refused. It is rendered here, in Go's templates, and
// kept up to date by a stream of rendered pieces; its one script puts them in
// their place, and sends what an operator orders to the API. The page itself
// needs no token and can order nothing.
package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/sse"
)

//go:embed assets
var assets embed.FS

// policy lets the page load its own script and style and talk to where it came
// from, and nothing else (Content Security Policy level 3).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// lastEvents is how many events the page shows.
const lastEvents = 40

// maxViewers bounds the pages that are kept up to date at the same time.
const maxViewers = 64

// pause is the least time between two updates of one page.
const pause = 300 * time.Millisecond

// Handler serves the page at / and what it needs under /page/.
type Handler struct {
	desk    *desk.Desk
	pages   *template.Template
	mux     *http.ServeMux
	viewers chan struct{}
	closing <-chan struct{}
}

// New returns the page's handler. Streams end when closing is closed.
func New(d *desk.Desk, closing <-chan struct{}) (*Handler, error) {
	pages, err := template.New("").Funcs(functions()).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	h := &Handler{desk: d, pages: pages, mux: http.NewServeMux(), viewers: make(chan struct{}, maxViewers), closing: closing}
	h.mux.HandleFunc("GET /{$}", h.index)
	h.mux.HandleFunc("GET /page/stream", h.stream)
	h.mux.HandleFunc("GET /page/{file}", h.asset)
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("X-Content-Type-Options", "nosniff")
	h.mux.ServeHTTP(w, r)
}

// asset serves script, style and icon; the templates are not for sale.
func (h *Handler) asset(w http.ResponseWriter, r *http.Request) {
	kinds := map[string]string{
		"page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
	}
	kind, ok := kinds[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	data, err := assets.ReadFile("assets/" + r.PathValue("file"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(data)
}

// content is what the page shows.
type content struct {
	Status   desk.Status
	Machines []desk.Machine
	Events   []desk.Event // newest first
	Cursor   int64
}

func (h *Handler) content(r *http.Request) (content, error) {
	var c content
	var err error
	if c.Status, err = h.desk.Status(r.Context()); err != nil {
		return c, err
	}
	if c.Machines, err = h.desk.Machines(r.Context()); err != nil {
		return c, err
	}
	if c.Cursor, err = h.desk.LastEvent(r.Context()); err != nil {
		return c, err
	}
	list, err := h.desk.Events(r.Context(), max(0, c.Cursor-lastEvents), lastEvents)
	for _, e := range list {
		c.Events = append([]desk.Event{e}, c.Events...)
	}
	return c, err
}

func (h *Handler) index(w http.ResponseWriter, r *http.Request) {
	c, err := h.content(r)
	if err != nil {
		http.Error(w, "the ledger does not answer: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	page, err := h.render("index.html", c)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(page))
}

func (h *Handler) render(name string, v any) (string, error) {
	var b bytes.Buffer
	err := h.pages.ExecuteTemplate(&b, name, v)
	return b.String(), err
}

// stream keeps one page up to date.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case h.viewers <- struct{}{}:
		defer func() { <-h.viewers }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	v := viewer{h: h, out: sse.Start(w), sent: map[string]string{}, events: -1}
	v.run(r)
}
