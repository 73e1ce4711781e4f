package repro

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/slipway/slipway/internal/hosttool"
)

// The other user. It exists only in the mount name space of its commands, which
// show an /etc/passwd of their own, so that nothing on the host is changed.
const (
	otherName = "slipway-repro"
	otherID   = 61234
	otherSubs = 1 << 20 // first of its subordinate ids
)

// makeKey makes a signing key for a workshop; equal keys make equal signatures.
func (w *workshop) makeKey(t *testing.T) {
	t.Helper()
	must(t, hosttool.Run(t.Context(), hosttool.Cmd{Name: "ssh-keygen", Args: []string{
		"-q", "-t", "ed25519", "-N", "", "-C", "repro", "-f", w.path("key")}}))
}

func (w *workshop) takeKey(t *testing.T, other *workshop) {
	t.Helper()
	must(t, copyFile(other.path("key"), w.path("key")))
	must(t, copyFile(other.path("key.pub"), w.path("key.pub")))
}

// as lets everything in the workshop run as another user, with another umask and
// on one processor. Without root it stays the same user.
func (w *workshop) asOther(t *testing.T) {
	t.Helper()
	const become = `umask 077; exec taskset -c 0 "$@"`
	if os.Geteuid() != 0 {
		w.in = []string{"sh", "-ec", become, "sh"}
		return
	}
	const script = `for f in passwd group subuid subgid; do mount --bind "$0/etc/$f" "/etc/$f"; done
umask 077
exec taskset -c 0 setpriv --reuid %[1]d --regid %[1]d --clear-groups -- "$@"`
	must(t, os.Mkdir(w.path("etc"), 0o755))
	for file, line := range map[string]string{
		"passwd": fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", otherName, otherID, otherID, w.path("home")),
		"group":  fmt.Sprintf("%s:x:%d:\n", otherName, otherID),
		"subuid": otherName + ":" + strconv.Itoa(otherSubs) + ":65536\n",
		"subgid": otherName + ":" + strconv.Itoa(otherSubs) + ":65536\n",
	} {
		host, err := os.ReadFile("/etc/" + file)
		must(t, err)
		must(t, os.WriteFile(w.path("etc", file), append(host, line...), 0o644))
	}
	w.in = []string{"unshare", "--mount", "sh", "-ec", fmt.Sprintf(script, otherID), w.dir}
	must(t, w.giveTo(otherID))
}

// giveTo makes the user the owner of the workshop, but for the inputs in the
// cache: those it may only read.
func (w *workshop) giveTo(id int) error {
	return filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p == w.path("cache", "sha256") {
			return filepath.SkipDir
		}
		return os.Lchown(p, id, id)
	})
}
