// Package httpsource is an install's source on the network: pxed.
package httpsource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
)

// Options says where pxed is and who asks.
type Options struct {
	Server string // base URL; after commas those of others, each asked when the one before is away
	Ticket string // Ticket.ID; empty for a machine that only reports
	Start  string // names this start of the machine, and no other; may be empty
	Client *http.Client
	// Stall is how long nothing may arrive before a link counts as cut.
	Stall time.Duration
	// Small bounds a small request as a whole.
	Small time.Duration
}

// Source is pxed as an install sees it.
type Source struct {
	o     Options
	bases []*url.URL
	now   atomic.Int32 // which of them is asked
}

// New returns a source, or an error for a server that is no URL.
func New(o Options) (*Source, error) {
	s := &Source{o: o}
	for text := range strings.SplitSeq(o.Server, ",") {
		base, err := url.Parse(text)
		if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
			return nil, fmt.Errorf("%s=%s is not a URL", machine.WordServer, text)
		}
		s.bases = append(s.bases, base)
	}
	return s, nil
}

// away lets the next request go to another server: the one that was asked does not
// answer. Several requests may find that out at once.
func (s *Source) away(asked int32, err error) error {
	if len(s.bases) == 1 {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the link was cut") // by the end of who was asked, as a rule
	}
	next := (asked + 1) % int32(len(s.bases))
	s.now.CompareAndSwap(asked, next)
	return fmt.Errorf("%w; asking %s next", err, s.bases[s.now.Load()].Host)
}

var _ install.Source = (*Source)(nil)

// Report implements install.Orders. The time is that of the answer's Date header.
func (s *Source) Report(ctx context.Context, r machine.Report) (machine.Reply, time.Time, error) {
	var reply machine.Reply
	header, err := s.call(ctx, http.MethodPost, machine.PathReport, r, &reply)
	if err != nil {
		return reply, time.Time{}, err
	}
	at, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		at = time.Time{} // a server without a clock sets none
	}
	return reply, at, nil
}

// Ticket implements install.Orders. The ticket that comes back must be the one
// that was asked for; its secret need not be repeated.
func (s *Source) Ticket(ctx context.Context) (machine.Ticket, error) {
	var t machine.Ticket
	_, err := s.call(ctx, http.MethodGet, machine.PathTicket, nil, &t)
	if err == nil && t.ID == "" {
		t.ID = s.o.Ticket
	}
	if err == nil && t.ID != s.o.Ticket {
		err = fmt.Errorf("%w: the server sent another one", install.ErrTicket)
	}
	return t, err
}

// Seed implements install.Orders.
func (s *Source) Seed(ctx context.Context) (machine.Seed, error) {
	var seed machine.Seed
	_, err := s.call(ctx, http.MethodGet, machine.PathSeed, nil, &seed)
	return seed, err
}

// Progress implements install.Desk.
func (s *Source) Progress(ctx context.Context, p machine.Progress) error {
	_, err := s.call(ctx, http.MethodPost, machine.PathProgress, p, nil)
	return err
}

// Receipt implements install.Desk.
func (s *Source) Receipt(ctx context.Context, r machine.Receipt) error {
	_, err := s.call(ctx, http.MethodPost, machine.PathReceipt, r, nil)
	return err
}

// Index implements install.Build.
func (s *Source) Index(ctx context.Context) (index, signature []byte, err error) {
	if index, err = s.file(ctx, artifact.IndexName, artifact.MaxIndexSize); err != nil {
		return nil, nil, err
	}
	signature, err = s.file(ctx, artifact.SignatureName, 1<<16)
	return index, signature, err
}

func (s *Source) file(ctx context.Context, name string, limit int64) ([]byte, error) {
	body, err := s.Open(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%w: %s has more than %d bytes", install.ErrAnswer, name, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// maxAnswer bounds a small answer, bytes.
const maxAnswer = 1 << 20

// call makes a small request and reads the answer into out.
func (s *Source) call(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Small)
	defer cancel()
	asked := s.now.Load()
	req, err := s.request(ctx, asked, method, path, in)
	if err != nil {
		return nil, err
	}
	resp, err := s.o.Client.Do(req)
	if err != nil {
		return nil, s.away(asked, plain(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s: %w", path, err)
	}
	if err := refusal(resp, path, data); err != nil {
		return nil, err
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			return nil, fmt.Errorf("%w: the answer to %s is not understood: %w", install.ErrAnswer, path, err)
		}
	}
	return resp.Header, nil
}

func (s *Source) request(ctx context.Context, asked int32, method, path string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", install.ErrAnswer, err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.bases[asked].JoinPath(path).String(), body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", install.ErrAnswer, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.o.Start != "" {
		req.Header.Set(machine.HeaderStart, s.o.Start)
	}
	if s.o.Ticket != "" {
		req.Header.Set("Authorization", "Bearer "+s.o.Ticket)
	}
	return req, nil
}

// refusal tells what an answer other than success means. The other side's own
// words come along: they say which ticket and why.
func refusal(resp *http.Response, path string, body []byte) error {
	if resp.StatusCode/100 == 2 {
		return nil
	}
	text := fmt.Sprintf("%s answered %d %s", path, resp.StatusCode, http.StatusText(resp.StatusCode))
	var said struct{ Error, Hint string }
	if json.Unmarshal(body, &said) == nil && said.Error != "" {
		text += ": " + said.Error
	}
	err := errors.New(text)
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict, http.StatusGone:
		err = fmt.Errorf("%w: %w", install.ErrTicket, err)
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
	default:
		if resp.StatusCode/100 == 4 {
			err = fmt.Errorf("%w: %w", install.ErrAnswer, err)
		}
	}
	if said.Hint != "" {
		return diag.WithHint(err, said.Hint)
	}
	return err
}

// plain leaves out the request from an error of the HTTP client: what is said
// around it names the file, and the URL of a ticket is no secret but noise.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Transport is one that asks nobody else: no proxy, HTTP/1.1, and one connection
// that is kept.
func Transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.ForceAttemptHTTP2 = false
	t.DisableCompression = true
	t.ResponseHeaderTimeout = 20 * time.Second
	return t
}
