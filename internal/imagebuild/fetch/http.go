package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
)

// temporaryError is a failure that another try may mend.
type temporaryError struct{ err error }

func (t *temporaryError) Error() string { return t.err.Error() }
func (t *temporaryError) Unwrap() error { return t.err }

// errStalled ends a connection that gives nothing any more.
var errStalled = errors.New("the connection stalled")

// newClient gives up on connections that are not made, and leaves it to the
// stall timer to end those that give nothing: a large file may take an hour.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConnsPerHost:   8,
		ForceAttemptHTTP2:     true,
	}}
}

// attempt asks for what is missing, once.
func (t *transfer) attempt(ctx context.Context) error {
	have, err := t.part.Size()
	if err != nil {
		return err
	}
	if have == t.item.size {
		return nil
	}
	if have > t.item.size {
		if err := t.restart(); err != nil {
			return err
		}
		have = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := t.fetcher.Stall
	timer := time.AfterFunc(stall, func() { cancel(fmt.Errorf("%w: nothing for %s", errStalled, stall)) })
	defer timer.Stop()

	resp, err := t.fetcher.get(ctx, t.item.url, have, t.item.authorization)
	if err != nil {
		return cause(ctx, err)
	}
	defer resp.Body.Close()
	if err := t.judge(resp, have); err != nil {
		return err
	}
	return t.receive(ctx, resp, func() { timer.Reset(stall) })
}

func (f *Fetcher) get(ctx context.Context, url string, from int64, authorization string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("bad URL: %w", err)
	}
	req.Header.Set("User-Agent", "slipway-imagebuild")
	req.Header.Set("Accept-Encoding", "identity") // ranges and digests are of the file itself
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	resp, err := f.Client.Do(req)
	if err != nil {
		return nil, &temporaryError{err}
	}
	return resp, nil
}

// judge decides by the status what becomes of the answer.
func (t *transfer) judge(resp *http.Response, have int64) error {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		if have > 0 { // the server does not do ranges
			if err := t.restart(); err != nil {
				return err
			}
		}
		return t.fits(resp, 0)
	case code == http.StatusPartialContent:
		if want := fmt.Sprintf("bytes %d-", have); !strings.HasPrefix(resp.Header.Get("Content-Range"), want) {
			return errors.Join(&temporaryError{fmt.Errorf("%s: asked for bytes from %d, got %q", t.item.url, have, resp.Header.Get("Content-Range"))}, t.restart())
		}
		return t.fits(resp, have)
	case code == http.StatusRequestedRangeNotSatisfiable:
		return errors.Join(&temporaryError{fmt.Errorf("%s: the file is shorter than what has come in", t.item.url)}, t.restart())
	case code == http.StatusNotFound || code == http.StatusGone:
		return &goneError{t.item, resp.Status}
	case passing(code):
		return &temporaryError{fmt.Errorf("%s: %s", t.item.url, resp.Status)}
	default:
		return diag.WithHint(fmt.Errorf("%s: %s", t.item.url, resp.Status), "see whether the mirror or a proxy wants something")
	}
}

// passing reports whether a status may be another one soon.
func passing(code int) bool {
	return code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
}

// fits sees from the answer's length, where it has one, that another file would
// come: before it does.
func (t *transfer) fits(resp *http.Response, have int64) error {
	if n := resp.ContentLength; n >= 0 && have+n != t.item.size {
		return fmt.Errorf("%w: want %d bytes, the source has %d", digest.ErrMismatch, t.item.size, have+n)
	}
	return nil
}

// receive appends the body to the part; alive is called whenever bytes come in.
func (t *transfer) receive(ctx context.Context, resp *http.Response, alive func()) error {
	have, err := t.part.Size()
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		n, rerr := resp.Body.Read(buf)
		if n > 0 {
			alive()
			if have += int64(n); have > t.item.size {
				return fmt.Errorf("%w: want %d bytes, got more", digest.ErrMismatch, t.item.size)
			}
			if _, err := t.part.Write(buf[:n]); err != nil {
				return err
			}
			t.count(have)
		}
		if errors.Is(rerr, io.EOF) {
			break
		}
		if rerr != nil {
			return cause(ctx, &temporaryError{fmt.Errorf("%s: %w", t.item.url, rerr)})
		}
	}
	if have < t.item.size {
		// Without a length in the answer the end of a file and a cut link look alike.
		return &temporaryError{fmt.Errorf("%s: ended after %d of %d bytes", t.item.url, have, t.item.size)}
	}
	return nil
}

// cause prefers to say that the connection stalled over "context canceled".
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); errors.Is(why, errStalled) {
		return &temporaryError{why}
	}
	return err
}
