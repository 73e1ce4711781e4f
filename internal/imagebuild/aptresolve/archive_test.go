package aptresolve_test

import (
	"testing"
	"time"

	"github.com/slipway/slipway/internal/imagebuild/aptresolve"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve/apttest"
)

// full makes an archive with what a resolve asks for, and the request for it.
func full(t *testing.T, k apttest.Key) (*apttest.Archive, aptresolve.Request) {
	t.Helper()
	a := apttest.New(t, k)
	a.Suite(t, "debian", "trixie", trixie, 24*time.Hour)
	a.Suite(t, "debian", "trixie-updates", "", 24*time.Hour)
	a.Suite(t, "debian-security", "trixie-security", security, 24*time.Hour)
	return a, aptresolve.Request{
		Suite: "trixie", Components: []string{"main"}, Keyring: k.Keyring,
		Mirrors: aptresolve.Mirrors{Debian: a.URL + "/debian", Security: a.URL + "/debian-security"},
	}
}

// The little distribution: two essential packages, a chain of dependencies, a
// recommendation, a kernel behind its meta package, a security update.
var (
	trixie = apttest.Stanza("base-files", "13", "Essential: yes\n") +
		apttest.Stanza("dpkg", "1.22", "Essential: yes\nPre-Depends: libc6\n") +
		apttest.Stanza("libc6", "2.41-12+deb13u1", "") +
		apttest.Stanza("apt", "3.0.3", "Depends: libc6\n") +
		apttest.Stanza("curl", "8.14.1~rc1-2", "Depends: libcurl4\nRecommends: extra\n") +
		apttest.Stanza("libcurl4", "1:8.14", "Depends: libc6\n") +
		apttest.Stanza("extra", "1", "") +
		apttest.Stanza("broken", "1", "Depends: nowhere\n") +
		apttest.Stanza("linux-image-amd64", "6.12.1-1", "Depends: linux-image-6.12.1-amd64 (= 6.12.1-1)\n") +
		apttest.Stanza("linux-image-6.12.1-amd64", "6.12.1-1", "Depends: kmod\n") +
		apttest.Stanza("kmod", "34", "") +
		apttest.Stanza("ipxe", "1.21.1+git1-1", "Depends: extra\n")
	security = apttest.Stanza("libcurl4", "1:8.14+deb13u1", "Depends: libc6\n")
)
