package aptresolve_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve/apttest"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/progress"
)

func rootfs(names ...string) []pin.WantedSet {
	return []pin.WantedSet{{Name: pin.SetRootfs, Packages: names, Closure: true}}
}

func resolve(ctx context.Context, req aptresolve.Request) (pin.Debian, error) {
	return aptresolve.Resolve(ctx, req, progress.Nop{})
}

func versions(s pin.Set) (out []string) {
	for _, p := range s.Packages {
		out = append(out, p.Archive+" "+p.Path)
	}
	return out
}

func TestResolve(t *testing.T) {
	a, req := full(t, apttest.NewKey(t, "good"))
	before := hostState(t)
	req.Sets = append(rootfs("apt", "curl"),
		pin.WantedSet{Name: pin.SetKernel, Packages: []string{"linux-image-amd64"}},
		pin.WantedSet{Name: pin.SetNetboot, Packages: []string{"ipxe"}})
	deb, err := resolve(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		pin.SetKernel:  {"debian pool/main/linux-image-6.12.1-amd64_6.12.1-1_amd64.deb"},
		pin.SetNetboot: {"debian pool/main/ipxe_1.21.1+git1-1_amd64.deb"},
		pin.SetRootfs: {
			"debian pool/main/apt_3.0.3_amd64.deb",
			"debian pool/main/base-files_13_amd64.deb",
			"debian pool/main/curl_8.14.1~rc1-2_amd64.deb",
			"debian pool/main/dpkg_1.22_amd64.deb",
			"debian pool/main/libc6_2.41-12+deb13u1_amd64.deb",
			"debian-security pool/main/libcurl4_1:8.14+deb13u1_amd64.deb",
		},
	}
	for _, s := range deb.Sets {
		if got := versions(s); !slices.Equal(got, want[s.Name]) {
			t.Errorf("%s is\n%s\nwant\n%s", s.Name, strings.Join(got, "\n"), strings.Join(want[s.Name], "\n"))
		}
	}
	libcurl := deb.Sets[2].Packages[5]
	if libcurl.Digest != digest.Of([]byte("libcurl41:8.14+deb13u1")) || libcurl.Size != 100 || libcurl.Version != "1:8.14+deb13u1" {
		t.Errorf("libcurl4 is %+v", libcurl)
	}
	if len(deb.Releases) != 3 || deb.Releases[2].Digest != digest.Of(a.Files["/debian-security/dists/trixie-security/InRelease"]) || time.Since(deb.Releases[0].Date) > 2*time.Hour {
		t.Errorf("releases are %+v", deb.Releases)
	}
	lock := pin.Lock{Debian: deb}
	if _, err := pin.Parse("x.lock", lock.Marshal()); err != nil {
		t.Errorf("cannot be read as a lock: %v", err)
	}
	if bytes.Contains(lock.Marshal(), []byte("127.0.0.1")) {
		t.Error("the lock names the host it came from")
	}
	if after := hostState(t); after != before {
		t.Errorf("the host's apt was touched:\n%s\nbefore:\n%s", after, before)
	}
}

// hostState is what would change if apt worked on the host itself.
func hostState(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"/var/lib/apt/lists", "/var/lib/dpkg", "/var/cache/apt", "/etc/apt"} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.Contains(e.Name(), "127.0.0.1") || strings.Contains(e.Name(), "slipway") {
				b.WriteString(filepath.Join(dir, e.Name()) + "\n")
			}
		}
	}
	return b.String()
}

func TestNothingIsLeftBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, req := full(t, apttest.NewKey(t, "good"))
	for _, name := range []string{"curl", "unknown"} {
		req.Sets = rootfs(name)
		resolve(t.Context(), req) // the outcome is not the point
	}
	if left, _ := filepath.Glob(os.Getenv("TMPDIR") + "/slipway-*"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestFailures(t *testing.T) {
	good, other := apttest.NewKey(t, "good"), apttest.NewKey(t, "other")
	closed := closedPort(t)
	for name, c := range map[string]struct {
		is     error
		say    []string
		hint   string
		break_ func(a *apttest.Archive, req *aptresolve.Request)
	}{
		"flipped byte in the signed text": {aptresolve.ErrSignature, nil, "keyring", func(a *apttest.Archive, _ *aptresolve.Request) {
			f := "/debian/dists/trixie/InRelease"
			a.Files[f] = bytes.Replace(a.Files[f], []byte("Origin: Test"), []byte("Origin: Tesu"), 1)
		}},
		"another key": {aptresolve.ErrSignature, nil, "keyring", func(a *apttest.Archive, req *aptresolve.Request) { req.Keyring = other.Keyring }},
		"no signature": {aptresolve.ErrSignature, nil, "keyring", func(a *apttest.Archive, _ *aptresolve.Request) {
			a.Files["/debian/dists/trixie/InRelease"] = []byte("Origin: Test\nSuite: trixie\n")
		}},
		"index that is not the signed one": {aptresolve.ErrIndex, []string{"Packages"}, "another mirror", func(a *apttest.Archive, _ *aptresolve.Request) {
			a.Files["/debian/dists/trixie/main/binary-amd64/Packages"][3] ^= 1
		}},
		"out of date": {aptresolve.ErrExpired, nil, "clock", func(a *apttest.Archive, _ *aptresolve.Request) {
			a.Suite(t, "debian", "trixie", trixie, -time.Minute)
		}},
		"no such suite":     {aptresolve.ErrSuite, []string{"forky"}, "debian.suite", func(_ *apttest.Archive, req *aptresolve.Request) { req.Suite = "forky" }},
		"no such component": {aptresolve.ErrSuite, []string{"contrib"}, "debian.components", func(_ *apttest.Archive, req *aptresolve.Request) { req.Components = []string{"main", "contrib"} }},
		"nobody there": {aptresolve.ErrNetwork, nil, aptresolve.EnvMirror, func(_ *apttest.Archive, req *aptresolve.Request) {
			req.Mirrors = aptresolve.Mirrors{Debian: closed + "/debian", Security: closed + "/debian-security"}
		}},
		"no such host": {aptresolve.ErrNetwork, nil, aptresolve.EnvMirror, func(_ *apttest.Archive, req *aptresolve.Request) {
			req.Mirrors = aptresolve.Mirrors{Debian: "http://archive.invalid/debian", Security: "http://archive.invalid/debian-security"}
		}},
		"no keyring": {os.ErrNotExist, nil, "debian-archive-keyring", func(_ *apttest.Archive, req *aptresolve.Request) { req.Keyring = "/nowhere.gpg" }},
		"unknown packages": {aptresolve.ErrUnknown, []string{"crul", "zzzzzzzz"}, "did you mean curl?", func(_ *apttest.Archive, req *aptresolve.Request) {
			req.Sets = rootfs("apt", "crul", "zzzzzzzz")
		}},
		"unknown package without dependencies": {aptresolve.ErrUnknown, []string{"ipxf"}, "did you mean ipxe?", func(_ *apttest.Archive, req *aptresolve.Request) {
			req.Sets = []pin.WantedSet{{Name: pin.SetNetboot, Packages: []string{"ipxf"}}}
		}},
		"unmet dependency": {aptresolve.ErrConflict, []string{"broken : Depends: nowhere"}, "system.packages", func(_ *apttest.Archive, req *aptresolve.Request) { req.Sets = rootfs("broken") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time apt waits before it tries again
			a, req := full(t, good)
			req.Sets = rootfs("curl")
			c.break_(a, &req)
			_, err := resolve(t.Context(), req)
			if err == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("got %v, want %v", err, c.is)
			}
			for _, s := range c.say {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q is missing in: %v", s, err)
				}
			}
			if !strings.Contains(diag.HintOf(err), c.hint) {
				t.Errorf("hint %q, want %q; error: %v", diag.HintOf(err), c.hint, err)
			}
			t.Logf("error: %v\nhint: %s", err, diag.HintOf(err))
		})
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func TestCancelEndsApt(t *testing.T) {
	_, req := full(t, apttest.NewKey(t, "good"))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	req.Sets = rootfs("curl")
	if _, err := resolve(ctx, req); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
