package repro

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/pin"
)

// complains checks that a build failed as a person wants to read it: one error
// that says these things, one hint that says those, and the exit code.
func (o outcome) complains(t *testing.T, code exit.Code, errorSays, hintSays string) {
	t.Helper()
	if o.code != int(code) {
		t.Errorf("exit code %d, want %d", o.code, code)
	}
	for prefix, want := range map[string]string{"error: ": errorSays, "hint: ": hintSays} {
		lines := regexp.MustCompile(`(?m)^`+prefix+`.*`).FindAllString(o.said, -1)
		if len(lines) != 1 {
			t.Errorf("%d lines begin with %q", len(lines), prefix)
			continue
		}
		if !regexp.MustCompile(want).MatchString(lines[0]) {
			t.Errorf("%q does not match %q", lines[0], want)
		}
	}
	if t.Failed() {
		t.Logf("it said:\n%s", o.said)
	}
}

// inMounts lets the workshop's commands run after mount commands in a mount name
// space of their own.
func (w *workshop) inMounts(commands string) {
	flags := "-m"
	if os.Geteuid() != 0 {
		flags = "-rm"
	}
	w.in = []string{"unshare", flags, "sh", "-ec", commands + "\nexec \"$@\"", w.dir}
}

// fullDisk gives the outputs a file system that is too small for them.
func fullDisk(t *testing.T, warm *workshop) {
	w := open(t, "full")
	w.makeKey(t)
	w.fillFrom(t, warm)
	must(t, os.Mkdir(w.path("out"), 0o755))
	w.inMounts(`mount -t tmpfs -o size=64m tmpfs "$0/out"`)
	w.build(t.Context(), t).complains(t, exit.Failed, `(?i)disk full|no space left`, `free|space`)
}

// fullCache gives the cache a file system that is too small for a stage.
func fullCache(t *testing.T, warm *workshop) {
	w := open(t, "fullcache")
	w.makeKey(t)
	w.fillFrom(t, warm)
	must(t, os.Mkdir(w.path("blobs"), 0o755))
	w.inMounts(`mount --bind "$0/cache/sha256" "$0/blobs"
mount -t tmpfs -o size=16m tmpfs "$0/cache"
ln -s "$0/blobs" "$0/cache/sha256"`)
	w.build(t.Context(), t).complains(t, exit.Failed, `(?i)disk full|no space left`, `free|space`)
}

// noArchive gives a build nothing but an archive that nobody serves.
func noArchive(t *testing.T, _ *workshop) {
	w := open(t, "noarchive")
	w.makeKey(t)
	w.env = append(w.env, "SLIPWAY_DEBIAN_MIRROR=http://127.0.0.1:1/debian", "SLIPWAY_DEBIAN_SECURITY_MIRROR=http://127.0.0.1:1/security")
	w.build(t.Context(), t).complains(t, exit.Failed, `127\.0\.0\.1:1`, `.`)
}

// missingTool hides a program of the host. The stages are there, so that only
// what comes after them has to be done.
func missingTool(t *testing.T, warm *workshop) {
	w := open(t, "notool")
	w.makeKey(t)
	w.fillFrom(t, warm)
	w.inMounts(`mount --bind /dev/null "$(command -v qemu-img)"`)
	w.build(t.Context(), t).complains(t, exit.Failed, `qemu-img`, `qemu-utils`)
}

// archive serves the packages of a lock from a cache, but for the victim: that
// one is what spoil makes of it.
type archive struct {
	blobs  string            // sha256 directory of a cache
	paths  map[string]string // path in the archive -> hex digest
	victim string            // name of a package
	spoil  func(http.ResponseWriter, []byte)
}

func (a archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hex, ok := a.paths[strings.TrimPrefix(r.URL.Path, "/debian/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	data, err := os.ReadFile(filepath.Join(a.blobs, hex[:2], hex))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if strings.HasPrefix(filepath.Base(r.URL.Path), a.victim+"_") {
		a.spoil(w, data)
		return
	}
	w.Write(data) // a client that goes away is its own affair
}

// buildFrom builds with a cache that lacks only the victim, from an archive that
// spoils it.
func buildFrom(t *testing.T, warm *workshop, spoil func(http.ResponseWriter, []byte)) outcome {
	t.Helper()
	const victim = "sudo"
	w := open(t, "archive")
	w.makeKey(t)
	w.fillFrom(t, warm)
	must(t, os.RemoveAll(w.path("cache", "stage")))
	text, err := os.ReadFile(w.path("profiles", "lab.lock"))
	must(t, err)
	lock, err := pin.Parse("lab.lock", text)
	must(t, err)
	a := archive{blobs: warm.path("cache", "sha256"), paths: map[string]string{}, victim: victim, spoil: spoil}
	for _, p := range lock.Set(pin.SetRootfs).Packages {
		hex := p.Digest.Hex()
		a.paths[p.Path] = hex
		if p.Name == victim {
			must(t, os.Remove(w.path("cache", "sha256", hex[:2], hex)))
		}
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	w.env = append(w.env, "SLIPWAY_DEBIAN_MIRROR="+server.URL+"/debian", "SLIPWAY_DEBIAN_SECURITY_MIRROR="+server.URL+"/debian")
	return w.build(t.Context(), t)
}

// wrongDigest has the archive serve a package with one bit turned.
func wrongDigest(t *testing.T, warm *workshop) {
	o := buildFrom(t, warm, func(w http.ResponseWriter, data []byte) {
		data[len(data)/2] ^= 1
		w.Write(data)
	})
	o.complains(t, exit.Failed, `sudo.*(digest|sha256)|(digest|sha256).*sudo`, `.`)
}

// movedOn has the archive no longer know a package.
func movedOn(t *testing.T, warm *workshop) {
	o := buildFrom(t, warm, func(w http.ResponseWriter, _ []byte) {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "not here")
	})
	o.complains(t, exit.Failed, `sudo`, fmt.Sprintf("imagebuild pin -p %s", regexp.QuoteMeta("profiles/lab.yaml")))
}
