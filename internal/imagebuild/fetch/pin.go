package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/fetch/gomod"
	"github.com/slipway/slipway/internal/pin"
)

// Pin fetches an artifact without knowing what it should be, keeps it in the
// cache, and returns it with its digest and size. Trust in a URL rests on TLS at
// this moment; a Go module is checked against the checksum database too.
func (f Fetcher) Pin(ctx context.Context, a pin.Artifact) (pin.Artifact, error) {
	run := f.ready()
	task := run.Report.Start(a.Name+" "+a.Version, 0)
	err := run.pin(ctx, &a)
	task.Done("", err)
	return a, err
}

func (f *Fetcher) pin(ctx context.Context, a *pin.Artifact) (err error) {
	switch a.Kind {
	case pin.KindURL:
		a.Digest, a.Size, err = f.pinURL(ctx, a.Source)
	case pin.KindGoModule:
		var m gomod.Module
		if m, err = gomod.Download(ctx, a.Source); err != nil {
			return err
		}
		a.H1 = m.H1
		r := m.Open(ctx, a.Subdir)
		defer r.Close()
		a.Digest, a.Size, err = f.Cache.Add(ctx, r)
	case pin.KindFile:
		a.Digest, a.Size, err = f.pinFile(ctx, a.Source)
	case pin.KindImage:
		a.Digest, a.Size, err = f.pinImage(ctx, a.Source)
	}
	return err
}

func (f *Fetcher) pinFile(ctx context.Context, name string) (digest.Digest, int64, error) {
	r, err := os.Open(f.local(name))
	if err != nil {
		return digest.Digest{}, 0, err
	}
	defer r.Close()
	return f.Cache.Add(ctx, r)
}

func (f *Fetcher) local(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(f.Dir, name)
}

// pinURL starts over with each try: what has come in cannot be checked, so
// nothing can be resumed.
func (f *Fetcher) pinURL(ctx context.Context, url string) (d digest.Digest, n int64, err error) {
	pause := f.Pause
	for try := 1; ; try++ {
		d, n, err = f.pinOnce(ctx, url)
		var again *temporaryError
		if err == nil || !errors.As(err, &again) || try == f.Attempts || ctx.Err() != nil {
			return d, n, err
		}
		if err := sleep(ctx, pause); err != nil {
			return d, n, err
		}
		pause *= 2
	}
}

func (f *Fetcher) pinOnce(ctx context.Context, url string) (digest.Digest, int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(f.Stall, func() { cancel(fmt.Errorf("%w: nothing for %s", errStalled, f.Stall)) })
	defer timer.Stop()
	resp, err := f.get(ctx, url, 0, "")
	if err != nil {
		return digest.Digest{}, 0, cause(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		err := fmt.Errorf("%s: %s", url, resp.Status)
		if passing(resp.StatusCode) {
			err = &temporaryError{err}
		}
		return digest.Digest{}, 0, err
	}
	d, n, err := f.Cache.Add(ctx, &aliveReader{resp.Body, func() { timer.Reset(f.Stall) }})
	if err == nil && resp.ContentLength >= 0 && n != resp.ContentLength {
		err = fmt.Errorf("%s: ended after %d of %d bytes", url, n, resp.ContentLength)
	}
	return d, n, cause(ctx, err)
}

// aliveReader calls alive whenever bytes come in, and marks errors of the link
// as worth another try.
type aliveReader struct {
	r     io.Reader
	alive func()
}

func (a *aliveReader) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if n > 0 {
		a.alive()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = &temporaryError{err}
	}
	return n, err
}
