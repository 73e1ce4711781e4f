package httpsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
)

// Open implements install.Build with a Range request (RFC 9110, section 14). A
// link on which nothing arrives for a while is given up; how long the whole takes
// does not matter.
func (s *Source) Open(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := newWatchdog(s.o.Stall, cancel)
	asked := s.now.Load()
	req, err := s.request(ctx, asked, http.MethodGet, machine.PathArtifacts+name, nil)
	if err != nil {
		watch.stop()
		return nil, err
	}
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	watch.arm()
	resp, err := s.o.Client.Do(req)
	watch.rest()
	if err != nil {
		watch.stop()
		return nil, s.away(asked, s.cause(ctx, plain(err)))
	}
	if err := accept(resp, name, offset); err != nil {
		_ = resp.Body.Close()
		watch.stop()
		return nil, err
	}
	return &stream{body: resp.Body, ctx: ctx, watch: watch, source: s, asked: asked}, nil
}

// accept checks that the answer is what was asked for.
func accept(resp *http.Response, name string, offset int64) error {
	switch {
	case resp.StatusCode == http.StatusOK && offset == 0:
		return nil
	case resp.StatusCode == http.StatusOK:
		return fmt.Errorf("%w: the server does not know Range requests", install.ErrAnswer)
	case resp.StatusCode == http.StatusPartialContent:
		from, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes ")
		from, _, _ = strings.Cut(from, "-")
		if at, err := strconv.ParseInt(from, 10, 64); !ok || err != nil || at != offset {
			return fmt.Errorf("asked for byte %d of %s, got %q", offset, name, resp.Header.Get("Content-Range"))
		}
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		body = nil
	}
	return refusal(resp, name, body)
}

var errStalled = errors.New("nothing arrives any more")

// cause prefers the watchdog's reason to the one of a cancelled request.
func (s *Source) cause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w (for %s)", errStalled, s.o.Stall)
	}
	return err
}

type stream struct {
	body   io.ReadCloser
	ctx    context.Context
	watch  *watchdog
	source *Source
	asked  int32
}

func (s *stream) Read(p []byte) (int, error) {
	s.watch.arm()
	n, err := s.body.Read(p)
	s.watch.rest()
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.source.away(s.asked, s.source.cause(s.ctx, err))
	}
	return n, err
}

func (s *stream) Close() error {
	s.watch.stop()
	return s.body.Close()
}

// watchdog ends a request while it is waited for, not while the disk is written.
type watchdog struct {
	stall  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func newWatchdog(stall time.Duration, cancel context.CancelCauseFunc) *watchdog {
	w := &watchdog{stall: stall, cancel: cancel}
	w.timer = time.AfterFunc(stall, func() { cancel(errStalled) })
	w.timer.Stop()
	return w
}

func (w *watchdog) arm()  { w.timer.Reset(w.stall) }
func (w *watchdog) rest() { w.timer.Stop() }

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}
