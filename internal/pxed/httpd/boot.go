package httpd

import (
	"net/http"
	"strings"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/desk"
)

// maxWord bounds what a machine says about itself in a URL, bytes.
const maxWord = 128

// boot answers iPXE with a script. Whatever goes wrong, the answer is a script
// that sends the machine to its own disk: an error would stop it at a prompt.
func (s *Server) boot(w http.ResponseWriter, r *http.Request) {
	ask := ask(r)
	if !s.limit.allow(client(r)) {
		s.log.Warn("boot", "from", ask.From, "mac", ask.MAC, "gets", "wait", "why", "too many requests from this address")
		writeScript(w, wait("too many requests from this address, asking again", askAgain(r), crowded))
		return
	}
	answer := s.desk.Boot(r.Context(), ask)
	script := s.script(r, ask, answer)
	s.counted.Booted(string(answer.Action))
	if s.booted != nil && answer.MAC != "" {
		s.booted(cluster.MAC(answer.MAC))
	}
	s.log.Info("boot", "from", ask.From, "mac", ask.MAC, "serial", ask.Serial, "firmware", ask.Firmware,
		"node", answer.Node, "gets", string(answer.Action), "why", answer.Message)
	writeScript(w, script)
}

// crowded is how long a machine waits that asks too often, in seconds.
const crowded = 5

func writeScript(w http.ResponseWriter, script string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(script))
}

// askAgain is the URL that the request came by.
func askAgain(r *http.Request) string {
	return base(r) + machine.PathBoot + "?" + r.URL.Query().Encode()
}

// ask reads who asks. What is not a word is left out.
func ask(r *http.Request) desk.Ask {
	q := r.URL.Query()
	return desk.Ask{
		From: who(r), MAC: word(q.Get("mac")), Serial: word(q.Get("serial")), UUID: word(q.Get("uuid")),
		Firmware: word(q.Get("firmware")),
	}
}

// word is a short printable text, or nothing. A setting that iPXE could not
// expand comes as it was written.
func word(v string) string {
	v = strings.TrimSpace(v)
	if len(v) > maxWord || strings.HasPrefix(v, "${") || strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c > '~' }) {
		return ""
	}
	return v
}

// script turns a decision into iPXE's language.
func (s *Server) script(r *http.Request, ask desk.Ask, a desk.Answer) string {
	platform := platformOf(ask.Firmware)
	switch a.Action {
	case machine.ActionInstall:
		return s.start(r, platform, a, InstallWords(s.servers(r), a.Ticket, a.MAC))
	case machine.ActionInventory:
		return s.start(r, platform, a, InventoryWords(s.servers(r), a.MAC))
	case machine.ActionWait:
		return wait(a.Message, askAgain(r), max(a.After, 1))
	case machine.ActionPowerOff:
		return powerOff(platform, s.local, a.Message)
	default:
		return bootDisk(platform, s.local, a.Message)
	}
}

func (s *Server) start(r *http.Request, p Platform, a desk.Answer, words []string) string {
	kernel, okKernel := s.build.Index.One(artifact.RoleKernel)
	initrd, okInitrd := s.build.Index.One(artifact.RoleInstaller)
	if !okKernel || !okInitrd {
		return bootDisk(p, s.local, "this build has no installer for the network, going to the disk")
	}
	k := Kernel{Base: base(r), Kernel: kernel.Name, Initrd: initrd.Name, Words: append(words, s.console...)}
	return start(k, p, s.local, a.Message)
}

// servers is whom an installer may ask: this server by the address that the machine
// knows, then the others.
func (s *Server) servers(r *http.Request) string {
	own := base(r)
	all := []string{own}
	for _, other := range s.also {
		if other != own { // all members of a ledger may be given the same list
			all = append(all, other)
		}
	}
	return strings.Join(all, ",")
}

// platformOf is the kind of firmware; a request that does not tell, or nonsense,
// gets a script that finds out.
func platformOf(s string) Platform {
	switch p := Platform(s); p {
	case PlatformEFI, PlatformBIOS:
		return p
	default:
		return ""
	}
}
