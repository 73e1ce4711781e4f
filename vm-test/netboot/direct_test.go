package netboot

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/vm-test/qemu"
)

// Where the firmware is not the point, QEMU starts the installer itself, with the
// words that iPXE would have got from pxed. Nothing else is different.

// script asks pxed as the iPXE of the machine would.
func (s *server) script(t *testing.T, b *box) string {
	t.Helper()
	q := url.Values{"mac": {b.mac()}, "uuid": {b.uuid}, "serial": {b.serial}, "firmware": {"uefi"}}
	for {
		resp, err := http.Get(s.url() + machine.PathBoot + "?" + q.Encode())
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "too many requests") {
			return string(text)
		}
		time.Sleep(time.Second)
	}
}

// kernelLine is the line of a script that loads the installer.
var kernelLine = regexp.MustCompile(`(?m)^kernel --name vmlinuz \S+ initrd=initrd\.zst (.*) \|\| goto again$`)

// order is what an armed machine is started with.
func (s *server) order(t *testing.T, b *box) string {
	t.Helper()
	script := s.script(t, b)
	m := kernelLine.FindStringSubmatch(script)
	if m == nil {
		t.Fatalf("the script starts no installer:\n%s", script)
	}
	return m[1]
}

// armed arms n1 and gives what its machine is started with.
func (s *server) armed(t *testing.T, b *box, args ...string) string {
	t.Helper()
	s.arm(t, args...)
	return s.order(t, b)
}

// ticketWord is where the secret stands.
var ticketWord = regexp.MustCompile(regexp.QuoteMeta(machine.WordTicket) + `=[0-9a-f]{64}`)

// installer starts the installer with these words. The machine goes off when it
// would restart.
func (b *box) installer(t *testing.T, words string) *qemu.VM {
	t.Helper()
	kernel, _ := b.lab.index.One(artifact.RoleKernel)
	initrd, _ := b.lab.index.One(artifact.RoleInstaller)
	direct := *b
	direct.change = func(c *qemu.Config) {
		c.Kernel, c.Initrd, c.Append, c.NoReboot = b.lab.images+"/"+kernel.Name, b.lab.images+"/"+initrd.Name, words, true
	}
	return direct.powerOn(t)
}

// told checks that a refusal is in the log, among the events, in what pxed show
// says of the machine, and on the page.
func (s *server) told(t *testing.T, from int, name, words string) {
	t.Helper()
	shown, err := s.ask("show", name)
	if err != nil {
		t.Error(err)
	}
	for where, text := range map[string]string{
		"log": s.said(t)[from:], "events": eventsText(s.events(t)), "page": html.UnescapeString(s.page(t)), "answer to pxed show": string(shown),
	} {
		if !strings.Contains(text, words) {
			t.Errorf("the %s does not say %q:\n%s", where, words, tail(text))
		}
	}
}

func tail(text string) string { return text[max(0, len(text)-3000):] }

// linkDown takes a machine's port of the switch down, or up again.
func linkDown(t *testing.T, tap string, down bool) {
	t.Helper()
	state := "up"
	if down {
		state = "down"
	}
	if out, err := exec.CommandContext(t.Context(), "ip", "link", "set", tap, state).CombinedOutput(); err != nil {
		t.Errorf("ip link set %s %s: %v\n%s", tap, state, err, out)
	}
}

// silent is a disk from which no firmware boots: no table at its start, none at
// its end.
func silent(t *testing.T, path string, size int64) {
	t.Helper()
	const end = 1 << 20
	for _, at := range []int64{0, size - end} {
		if sumOf(t, path, at, end) != sumOf(t, "/dev/zero", 0, end) {
			t.Errorf("bytes %d to %d of the disk are not zero", at, at+end-1)
		}
	}
}
