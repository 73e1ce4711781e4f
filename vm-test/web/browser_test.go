package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is one tab.
type browser struct {
	*testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string // of the console
}

// within bounds every wait for the page.
const within = 30 * time.Second

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	if path == "" {
		path = "/usr/bin/chromium"
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no browser: %v (apt-get install chromium)", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("disable-background-networking", true), chromedp.WSURLReadTimeout(60*time.Second),
		chromedp.Env("TMPDIR="+t.TempDir()), // it leaves directories behind
	)
	allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop := chromedp.NewContext(allocated)
	t.Cleanup(stop)
	b := &browser{T: t, ctx: ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	call(b, log.Enable, cdp.Empty{})
	return b
}

// listen keeps what the console shows in red.
func (b *browser) listen(event any) {
	var text string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			text = fmt.Sprint(e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			text = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if text != "" {
		b.mu.Lock()
		b.errors = append(b.errors, text)
		b.mu.Unlock()
	}
}

// noErrors fails the test when the console shows any.
func (b *browser) noErrors() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errors {
		b.Errorf("console: %s", e)
	}
	b.errors = nil
}

func (b *browser) run(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, within)
	defer stop()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatalf("%v; the page shows:\n%s", err, b.text("body"))
	}
}

// eval gives the value of an expression.
func eval[T any](b *browser, expression string) T {
	b.Helper()
	return get(b, chromedp.Evaluate[T](expression))
}

// get runs an action that has a result.
func get[T any](b *browser, a chromedp.Action[T]) T {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, within)
	defer stop()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		b.Fatalf("%v; the page shows:\n%s", err, b.text("body"))
	}
	return v
}

// call sends a command of the browser's protocol.
func call[P, R any](b *browser, c cdp.Command[P, R], params P) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, within)
	defer stop()
	if _, err := chromedp.Call(ctx, c, params); err != nil {
		b.Fatal(err)
	}
}

func (b *browser) text(selector string) string {
	ctx, stop := context.WithTimeout(b.ctx, within)
	defer stop()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector)))
	if err != nil {
		return err.Error()
	}
	return s
}

// until waits for an expression to become true.
func (b *browser) until(expression string) {
	b.Helper()
	end := time.Now().Add(within)
	for !eval[bool](b, "!!("+expression+")") {
		if time.Now().After(end) {
			b.Fatalf("%s is not true after %s; the page shows:\n%s", expression, within, b.text("body"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// shows waits for an element to show a text.
func (b *browser) shows(selector, text string) {
	b.Helper()
	b.until(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", selector, text))
}

// size makes the window so wide, and light or dark.
func (b *browser) size(width, height int64, scheme string) {
	b.Helper()
	b.run(chromedp.EmulateViewport(width, height))
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// shoot writes a screenshot of the whole page, and checks that nothing sticks out
// of the window.
func (b *browser) shoot(name string) {
	b.Helper()
	if wide := eval[string](b, `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".skip")).map(e => e.tagName + "." + e.className).slice(0, 5).join(" ")`); wide != "" {
		b.Errorf("%s: wider than the window: %s", name, wide)
	}
	png := get(b, chromedp.FullScreenshot(100))
	dir := filepath.Join("..", "..", "out", "screenshots")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.Fatal(err)
	}
}

// focused is what the keyboard acts on.
func (b *browser) focused() string {
	b.Helper()
	return eval[string](b, `(e => [e.tagName.toLowerCase(), e.id, e.dataset.act ?? "", e.dataset.node ?? ""].join(" "))(document.activeElement)`)
}

// tabTo presses the tabulator until something has the focus.
func (b *browser) tabTo(want string) {
	b.Helper()
	var passed []string
	for range 60 {
		b.run(chromedp.KeyEvent("\t"))
		f := b.focused()
		if strings.Contains(f, want) {
			return
		}
		passed = append(passed, f)
	}
	b.Fatalf("the keyboard does not reach %q; it passed %q", want, passed)
}
