package web

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
)

// TestPage is an evening with pxed: machines appear, one is armed by keyboard
// alone, its install moves and fails, is explained, and succeeds.
func TestPage(t *testing.T) {
	b := newBrowser(t)
	s := start(t, "127.0.0.1:0", t.TempDir())
	b.size(1280, 900, "light")
	b.run(chromedp.Navigate(s.url + "/"))
	b.shows("#link", "live")
	b.shows("#node-n1 .state", "expected")
	b.shows("#no-events", "Nothing has happened")

	machinesAppear(s, b)
	armByKeyboard(b)
	wakingIsTold(b)
	token, ticket := s.install(desktest.MAC1, "n1")
	progressMoves(s, b, token)
	failureIsExplained(s, b, token, ticket)
	armAgainAndSucceed(s, b)
	twinsAreExplained(s, b)
	pictures(b)
	b.noErrors()
}

func machinesAppear(s *server, b *browser) {
	b.Helper()
	s.boot(desktest.MAC1, "n1")
	b.shows("#node-n1 .state", "bound")
	b.shows("#node-n1 .why", "what to do: to image it: pxed arm n1")
	s.boot(desktest.Stranger, "x-1")
	s.ask("POST", machine.PathReport, "", desktest.Report(desktest.Stranger, "x-1"), nil)
	const card = "#machine-mac_52_54_00_99_99_99"
	b.shows(card+" .why", "no node of the profile has MAC address "+desktest.Stranger)
	b.run(chromedp.Click(chromedp.CSS(card + " summary")))
	b.shows(card+" table", "slipway-x-1-system")
	s.boot(desktest.Stranger, "x-1")
	b.shows("#events li:first-child", desktest.Stranger)
	if !eval[bool](b, "document.querySelector('"+card+" details').open") {
		b.Error("an update has closed what the reader had opened")
	}
}

func armByKeyboard(b *browser) {
	b.Helper()
	if n := eval[int](b, `[...document.querySelectorAll("button[data-act]")].filter(e => e.checkVisibility()).length`); n != 0 {
		b.Errorf("without a token there are %d buttons to arm", n)
	}
	b.run(chromedp.Evaluate[chromedp.Void](`document.body.focus(); document.activeElement.blur()`))
	b.tabTo("token")
	b.run(chromedp.KeyEvent("wrong" + kb.Enter))
	b.shows("#link", "this token does not work")
	b.mu.Lock()
	b.errors = nil // the browser itself shows the 401 of the wrong token
	b.mu.Unlock()
	b.run(chromedp.KeyEvent(operatorToken + kb.Enter)) // the wrong one is selected, typing replaces it
	b.shows("#link", "may operate")
	b.tabTo("arm n1")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("dialog").open`)
	if f := b.focused(); !strings.Contains(f, "confirm") {
		b.Errorf("the dialog has the focus at %q", f)
	}
	b.shoot("arm-1280-light")
	b.run(chromedp.KeyEvent("n2" + kb.Enter))
	if eval[bool](b, `!document.querySelector("#go").disabled`) {
		b.Error("another node's name confirms")
	}
	b.run(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector("dialog").open`)
	if f := b.focused(); !strings.Contains(f, "arm n1") {
		b.Errorf("after the dialog the focus is at %q", f)
	}
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("dialog").open`)
	b.run(chromedp.KeyEvent("n1" + kb.Enter))
	b.until(`!document.querySelector("dialog").open`)
	b.shows("#node-n1 .state", "armed")
	b.shows("#node-n1 .grant", "try 0 of 3")
}

// wakingIsTold calls a machine, and is told why that is not possible here.
func wakingIsTold(b *browser) {
	b.Helper()
	b.tabTo("wake n1")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("#notice").open`)
	b.shows("#notice-title", "n1 was not called")
	b.shows("#notice-text", "this pxed sends no Wake-on-LAN packets (start it with an interface: -i IFACE)")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(`!document.querySelector("#notice").open`)
	b.mu.Lock()
	b.errors = nil // the browser itself shows the 400
	b.mu.Unlock()
}

func progressMoves(s *server, b *browser, token string) {
	b.Helper()
	const total = 888 << 20
	for _, percent := range []int64{20, 60} {
		s.progress(token, machine.Progress{Stage: machine.StageWrite, Done: total * percent / 100, Total: total, Rate: 95e6})
		b.until(`Math.abs(document.querySelector("#node-n1 progress")?.value - ` + string(rune('0'+percent/10)) + `0) <= 1`)
	}
	b.shows("#node-n1 .stages .now", "write")
	b.shows("#node-n1 .numbers", "95.0 MB/s")
	b.shows("#node-n1 .numbers", "left")
	b.shoot("progress-1280-light")
	b.size(390, 844, "dark")
	b.shoot("progress-390-dark")
	b.size(1280, 900, "light")
}

func failureIsExplained(s *server, b *browser, token string, ticket machine.Ticket) {
	b.Helper()
	r := desktest.Receipt(ticket, "n1")
	r.Written, r.ReadBack, r.Index, r.Bytes = false, false, digest.Digest{}, 0
	r.Error = "no disk may be written"
	r.Reasons = []string{"vda (slipway-n1-system) holds ntfs “Photos 2019 <b>”, which nobody allowed to destroy"}
	r.Disk.Content = []machine.Signature{{Type: "ntfs", Label: "Photos 2019 <b>"}}
	s.ask("POST", machine.PathReceipt, token, r, nil)
	b.shows("#node-n1 .state", "failed")
	b.shows("#node-n1 .why", "no disk may be written")
	b.shows("#node-n1 .why li", "Photos 2019 <b>")
	b.shows("#node-n1 .why .hint", "--overwrite slipway-n1-system")
	b.shows("#events", "nobody allowed to destroy")
}

func armAgainAndSucceed(s *server, b *browser) {
	b.Helper()
	b.run(chromedp.Click(chromedp.CSS(`button[data-act="arm"][data-node="n1"]`)))
	b.until(`document.querySelector("dialog").open`)
	b.run(chromedp.SendKeys(chromedp.CSS("#confirm"), "n1"+kb.Enter))
	b.shows("#node-n1 .state", "armed")
	token, ticket := s.install(desktest.MAC1, "n1")
	s.progress(token, machine.Progress{Stage: machine.StageReadBack, Done: 1, Total: 2})
	b.shows("#node-n1 .stages .now", "read-back")
	s.ask("POST", machine.PathReceipt, token, desktest.Receipt(ticket, "n1"), nil)
	b.shows("#node-n1 .state", "installed")
	b.until(`!document.querySelector("#node-n1 progress")`)
	s.ask("POST", machine.PathHealth, token, machine.Ready{Node: "n1", MachineID: "a", Slot: "a"}, nil)
	b.shows("#node-n1 .foot", "ready")
}

func twinsAreExplained(s *server, b *browser) {
	b.Helper()
	s.boot(desktest.MAC2, "sn-2")
	s.boot(desktest.MAC2, "sn-other")
	b.until(`document.querySelectorAll(".machine.refused").length == 2`)
	b.shows(".refused .state", "refused")
	b.shows(".refused .why", "two machines have the MAC address "+desktest.MAC2)
	b.shows(".refused .why", "what to do: switch one of them off")
	b.until(`[...document.querySelectorAll(".machine h3")].map(e => e.innerText).join(" ") == "n1 n2 n2 n3 ` + desktest.Stranger + `"`)
	b.shows("#events li.no", "conflict")
}

// pictures are taken of the page as it is in the end, narrow and wide, by day and
// by night.
func pictures(b *browser) {
	b.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details[data-keep=inventory]").forEach(d => { d.open = true })`))
	for _, scheme := range []string{"light", "dark"} {
		b.size(1280, 900, scheme)
		b.shoot("machines-1280-" + scheme)
		b.size(390, 844, scheme)
		b.shoot("machines-390-" + scheme)
	}
}

// The page takes its stream up again when pxed was restarted, and shows what
// happened meanwhile.
func TestPageSurvivesRestart(t *testing.T) {
	state := t.TempDir()
	b := newBrowser(t) // before the ledger: dqlite lets children inherit its socket
	s := start(t, "127.0.0.1:0", state)
	b.run(chromedp.Navigate(s.url + "/"))
	b.shows("#link", "live")
	s.stop()
	b.shows("#link", "does not answer")
	s = start(t, strings.TrimPrefix(s.url, "http://"), state)
	var m desk.Machine
	s.ask("POST", "/api/v1/nodes/n3/arm", operatorToken, desk.Order{}, &m)
	b.shows("#node-n3 .state", "armed")
	b.shows("#link", "live")
}
