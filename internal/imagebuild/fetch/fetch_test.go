package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/progress"
)

const aptDeb = "pool/apt_3.0.3_amd64.deb"

func one() map[string][]byte { return map[string][]byte{aptDeb: content("apt", 300_000)} }

func TestSetsFillsTheCacheAndThenNeedsNoNetwork(t *testing.T) {
	files := map[string][]byte{}
	for i := range 20 {
		name := fmt.Sprintf("pool/p%d_1+b%d~rc_all.deb", i, i)
		files[name] = content(name, 10_000+i)
	}
	a, c, lock := newArchive(t, files), openCache(t), lockOf(files)
	got, err := a.fetcher(c).Sets(t.Context(), lock, pin.SetRootfs)
	if err != nil {
		t.Fatal(err)
	}
	if want := (fetch.Summary{Fetched: 20, Bytes: 200_190}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	a.Close()
	f := fetch.Fetcher{Cache: c, Archives: func(context.Context) (map[string]string, error) {
		t.Error("asked where the archives are though everything is there")
		return nil, nil
	}}
	got, err = f.Sets(t.Context(), lock, pin.SetRootfs)
	if want := (fetch.Summary{Cached: 20}); got != want || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if n, err := c.VerifyAll(t.Context()); n != 20 || err != nil {
		t.Errorf("verified %d, %v", n, err)
	}
}

func TestAtMostFourAtOnce(t *testing.T) {
	files := map[string][]byte{}
	for i := range 12 {
		files[fmt.Sprintf("pool/p%d_1_all.deb", i)] = content(fmt.Sprint(i), 1000)
	}
	a := newArchive(t, files)
	// The first four wait for each other: so there are four, and a fifth would be seen.
	var four sync.WaitGroup
	four.Add(4)
	a.fault = func(_ http.ResponseWriter, _ *http.Request, n int) bool {
		if n <= 4 {
			four.Done()
			four.Wait()
		}
		return false
	}
	if _, err := a.fetcher(openCache(t)).Sets(t.Context(), lockOf(files), pin.SetRootfs); err != nil {
		t.Fatal(err)
	}
	if a.most != 4 {
		t.Errorf("%d requests at once", a.most)
	}
}

func TestACutLinkGoesOnWhereItStopped(t *testing.T) {
	files := one()
	a := newArchive(t, files)
	a.fault = func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if n == 1 {
			cut(w, files[aptDeb], 100_000)
		}
		return false
	}
	if _, err := a.fetcher(openCache(t)).Sets(t.Context(), lockOf(files), pin.SetRootfs); err != nil {
		t.Fatal(err)
	}
	asked := a.asked()
	if len(asked) != 2 || !strings.Contains(asked[1], " bytes=") || strings.HasSuffix(asked[1], "bytes=0-") {
		t.Errorf("asked %v", asked)
	}
}

func TestTheNextRunGoesOn(t *testing.T) {
	files, c := one(), openCache(t)
	a := newArchive(t, files)
	a.fault = func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if n == 1 {
			cut(w, files[aptDeb], 100_000)
		}
		http.Error(w, "down", http.StatusServiceUnavailable)
		return true
	}
	_, err := a.fetcher(c).Sets(t.Context(), lockOf(files), pin.SetRootfs)
	if err == nil || !strings.Contains(err.Error(), "tried 3 times") || diag.HintOf(err) == "" {
		t.Fatalf("got %v, hint %q", err, diag.HintOf(err))
	}
	a.fault = nil
	if _, err := a.fetcher(c).Sets(t.Context(), lockOf(files), pin.SetRootfs); err != nil {
		t.Fatal(err)
	}
	if last := a.asked()[3]; !strings.Contains(last, "bytes=") {
		t.Errorf("the second run asked %q", last)
	}
}

// part plants what an earlier run left.
func part(t *testing.T, dir string, d digest.Digest, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "partial", d.Hex()), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAStalePartIsThrownAwayOnce(t *testing.T) {
	files := one()
	good := files[aptDeb]
	wrong := bytes.Clone(good)
	wrong[7] ^= 1
	for name, stale := range map[string][]byte{
		"other beginning":  wrong[:1000],
		"complete, wrong":  wrong,
		"longer than all":  append(bytes.Clone(good), 'x'),
		"complete, right":  good,
		"empty":            nil,
		"right beginning":  good[:1000],
		"all but one byte": good[:len(good)-1],
	} {
		t.Run(name, func(t *testing.T) {
			c := openCache(t)
			a := newArchive(t, files)
			part(t, c.Dir(), digest.Of(good), stale)
			if _, err := a.fetcher(c).Sets(t.Context(), lockOf(files), pin.SetRootfs); err != nil {
				t.Fatal(err)
			}
			if err := c.Verify(t.Context(), digest.Of(good)); err != nil {
				t.Error(err)
			}
			if n := len(a.asked()); n > 2 {
				t.Errorf("asked %v", a.asked())
			}
		})
	}
}

func TestWrongBytesAreNamedAndNotKept(t *testing.T) {
	files := one()
	lock := lockOf(files)
	good := files[aptDeb]
	for name, change := range map[string]func([]byte) []byte{
		"flipped": func(b []byte) []byte { b[1234] ^= 1; return b },
		"shorter": func(b []byte) []byte { return b[:len(b)-1] },
		"longer":  func(b []byte) []byte { return append(b, 0) },
		"empty":   func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := openCache(t)
			a := newArchive(t, map[string][]byte{aptDeb: change(bytes.Clone(good))})
			_, err := a.fetcher(c).Sets(t.Context(), lock, pin.SetRootfs)
			if !errors.Is(err, digest.ErrMismatch) || !strings.Contains(err.Error(), "apt 3.0.3") || diag.HintOf(err) == "" {
				t.Errorf("got %v, hint %q", err, diag.HintOf(err))
			}
			if left, _ := filepath.Glob(c.Dir() + "/*/*"); slices.ContainsFunc(left, func(p string) bool { return !strings.Contains(p, "/sha256/") }) {
				t.Errorf("kept %v", left)
			}
			if c.Has(digest.Of(good)) || len(a.asked()) > 2 {
				t.Errorf("asked %v", a.asked())
			}
		})
	}
}

func TestAnArchiveThatMovedOn(t *testing.T) {
	files := one()
	a := newArchive(t, nil)
	_, err := a.fetcher(openCache(t)).Sets(t.Context(), lockOf(files), pin.SetRootfs)
	if !errors.Is(err, fetch.ErrGone) || !strings.Contains(err.Error(), "apt 3.0.3") {
		t.Errorf("got %v", err)
	}
	hint := diag.HintOf(err)
	if !strings.Contains(hint, "imagebuild pin -p profiles/x.yaml") || !strings.Contains(hint, "mirror") {
		t.Errorf("hint %q", hint)
	}
	if n := len(a.asked()); n != 1 {
		t.Errorf("asked %d times for what is gone", n)
	}
}

// Who has to pin anew sees at once all that is gone, in every set.
func TestAllThatIsGoneIsNamed(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range []string{"bash", "curl", "zlib"} {
		files["pool/"+name+"_1.0_amd64.deb"] = content(name, 1000)
	}
	lock := lockOf(files)
	kernel := lockOf(map[string][]byte{"pool/linux_6.12_amd64.deb": content("linux", 1000)}).Debian.Sets[0]
	kernel.Name = pin.SetKernel
	lock.Debian.Sets = append(lock.Debian.Sets, kernel)
	delete(files, "pool/bash_1.0_amd64.deb")
	delete(files, "pool/zlib_1.0_amd64.deb")
	a, c := newArchive(t, files), openCache(t)
	_, err := a.fetcher(c).Sets(t.Context(), lock, pin.SetRootfs, pin.SetKernel)
	if !errors.Is(err, fetch.ErrGone) || !strings.Contains(diag.HintOf(err), "imagebuild pin") {
		t.Fatalf("%v, hint %q", err, diag.HintOf(err))
	}
	for _, want := range []string{"no longer has 3 packages", "\n  bash 1.0 (http", "\n  linux 6.12 (http", "\n  zlib 1.0 (http"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "curl") || !c.Has(digest.Of(files["pool/curl_1.0_amd64.deb"])) {
		t.Errorf("what is there was not fetched: %v", err)
	}
}

func TestServersWithoutRanges(t *testing.T) {
	files := one()
	good := files[aptDeb]
	for name, c := range map[string]struct {
		requests int
		answer   func(w http.ResponseWriter)
	}{
		"ignores the range": {1, func(w http.ResponseWriter) { w.Write(good) }},
		"another range": {2, func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 5-9/10")
			w.WriteHeader(http.StatusPartialContent)
			w.Write(good[5:10])
		}},
		"range not satisfiable": {2, func(w http.ResponseWriter) { w.WriteHeader(http.StatusRequestedRangeNotSatisfiable) }},
	} {
		t.Run(name, func(t *testing.T) {
			cache := openCache(t)
			part(t, cache.Dir(), digest.Of(good), good[:1000])
			a := newArchive(t, files)
			a.fault = func(w http.ResponseWriter, _ *http.Request, n int) bool {
				if n == 1 {
					c.answer(w)
				}
				return n == 1
			}
			if _, err := a.fetcher(cache).Sets(t.Context(), lockOf(files), pin.SetRootfs); err != nil {
				t.Fatal(err)
			}
			if err := cache.Verify(t.Context(), digest.Of(good)); err != nil {
				t.Error(err)
			}
			if asked := a.asked(); len(asked) != c.requests || !strings.HasSuffix(asked[0], "bytes=1000-") {
				t.Errorf("asked %v", asked)
			}
		})
	}
}

func TestABodyWithoutLengthThatEndsEarly(t *testing.T) {
	files := one()
	a := newArchive(t, files)
	a.fault = func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if n == 1 {
			w.Write(files[aptDeb][:1000])
			w.(http.Flusher).Flush() // chunked, and ended properly
		}
		return n == 1
	}
	if _, err := a.fetcher(openCache(t)).Sets(t.Context(), lockOf(files), pin.SetRootfs); err != nil {
		t.Fatal(err)
	}
	if asked := a.asked(); len(asked) != 2 || !strings.HasSuffix(asked[1], "bytes=1000-") {
		t.Errorf("asked %v", asked)
	}
}

func TestCancelEnds(t *testing.T) {
	files := one()
	a := newArchive(t, files)
	ctx, cancel := context.WithCancel(t.Context())
	a.fault = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	if _, err := a.fetcher(openCache(t)).Sets(ctx, lockOf(files), pin.SetRootfs); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestTwoFetchersShareTheWork(t *testing.T) {
	files := map[string][]byte{}
	for i := range 10 {
		files[fmt.Sprintf("pool/p%d_1_all.deb", i)] = content(fmt.Sprint(i), 50_000)
	}
	a, c := newArchive(t, files), openCache(t)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if _, err := a.fetcher(c).Sets(t.Context(), lockOf(files), pin.SetRootfs); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(a.asked()); n != 10 {
		t.Errorf("10 files, %d requests", n)
	}
}

func TestUnknownSet(t *testing.T) {
	_, err := newArchive(t, nil).fetcher(openCache(t)).Sets(t.Context(), &pin.Lock{}, "kernel")
	if err == nil || !strings.Contains(diag.HintOf(err), "imagebuild pin") {
		t.Errorf("got %v", err)
	}
}

// counter adds up what is reported.
type counter struct {
	mu    sync.Mutex
	total int64
	done  int64
}

func (c *counter) Start(_ string, total int64) progress.Task {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += total
	return c
}

func (c *counter) Add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < 0 {
		panic("progress went back")
	}
	c.done += n
}

func (*counter) Done(string, error) {}

func TestProgressAddsUp(t *testing.T) {
	files, c := one(), openCache(t)
	good := files[aptDeb]
	wrong := bytes.Clone(good)
	wrong[0] ^= 1
	part(t, c.Dir(), digest.Of(good), wrong[:100_000])
	a, n := newArchive(t, files), &counter{}
	f := a.fetcher(c)
	f.Report = n
	if _, err := f.Sets(t.Context(), lockOf(files), pin.SetRootfs); err != nil {
		t.Fatal(err)
	}
	if n.total != 300_000 || n.done != 300_000 {
		t.Errorf("reported %d of %d", n.done, n.total)
	}
}
