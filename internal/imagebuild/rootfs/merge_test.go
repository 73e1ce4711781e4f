package rootfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/fstree"
)

const epoch = 1_700_000_000

// tarOf makes a tar stream the way mmdebstrap does: names begin with "./".
func tarOf(t *testing.T, headers ...*tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.ModTime.IsZero() {
			h.ModTime = time.Unix(epoch+100, 500) // after the epoch, with a fraction
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func entries(t *testing.T, r io.Reader) []*tar.Header {
	t.Helper()
	var out []*tar.Header
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h)
	}
}

func dir(name string, mode int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeDir, Name: "./" + name + "/", Mode: mode}
}

func file(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: "./" + name, Mode: 0o644, Size: size, Uname: "root", Gname: "root"}
}

func TestMergeLaysOverAndDrops(t *testing.T) {
	base := tarOf(t, dir("etc", 0o750), file("etc/kept", 3), file("etc/replaced", 3), file("etc/secret_key", 3))
	over, err := fstree.New(fstree.File("etc/replaced", 0o600, []byte("new")), fstree.Symlink("etc/link", "kept"))
	if err != nil {
		t.Fatal(err)
	}
	drop, err := NewDropper([]string{"etc/secret_*"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Merge(&out, base, epoch, drop.Drop, Paths(over), TreeLayer(over, epoch)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, h := range entries(t, &out) {
		names = append(names, h.Name)
		if h.ModTime.Unix() > epoch || h.ModTime.Nanosecond() != 0 {
			t.Errorf("%s has time %v, after the epoch or with a fraction", h.Name, h.ModTime)
		}
		if h.Uname != "" || h.Gname != "" {
			t.Errorf("%s keeps user names of the host", h.Name)
		}
		if h.Name == "./etc/" && h.Mode != 0o750 {
			t.Errorf("the lower directory's mode became %o", h.Mode)
		}
	}
	want := []string{"./etc/", "./etc/kept", "./etc/link", "./etc/replaced"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func TestMergeBringsMissingParents(t *testing.T) {
	over, err := fstree.New(fstree.File("a", 0o644, nil))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Merge(&out, tarOf(t, file("usr/lib/modules/x", 1)), epoch, func(string) bool { return false }, nil, TreeLayer(over, epoch)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, h := range entries(t, &out) {
		names = append(names, h.Name)
		if h.Typeflag == tar.TypeDir && (h.Mode != 0o755 || h.Uid != 0 || h.ModTime.Unix() > epoch) {
			t.Errorf("%+v", h)
		}
	}
	if want := []string{"./usr/", "./usr/lib/", "./usr/lib/modules/", "./usr/lib/modules/x", "./a"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func TestMergeTrustsCompiledPython(t *testing.T) {
	for flags, want := range map[byte]byte{0: 0, 1: 1, 3: 1} {
		var in bytes.Buffer
		w := tar.NewWriter(&in)
		module := append([]byte{0xa7, 0x0d, '\r', '\n', flags, 0, 0, 0}, "hash and code"...)
		if err := w.WriteHeader(&tar.Header{Name: "./a.pyc", Mode: 0o644, Size: int64(len(module))}); err != nil {
			t.Fatal(err)
		}
		w.Write(module)
		w.Close()
		var out bytes.Buffer
		if err := Merge(&out, &in, epoch, func(string) bool { return false }, nil); err != nil {
			t.Fatal(err)
		}
		tr := tar.NewReader(&out)
		if _, err := tr.Next(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(tr)
		module[4] = want
		if err != nil || !bytes.Equal(got, module) {
			t.Errorf("flags %d: %q, %v", flags, got, err)
		}
	}
}

func TestMergeKeepsCapabilities(t *testing.T) {
	h := file("usr/bin/ping", 1)
	h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02"}
	var out bytes.Buffer
	if err := Merge(&out, tarOf(t, h), epoch, func(string) bool { return false }, nil); err != nil {
		t.Fatal(err)
	}
	all := entries(t, &out)
	if got := all[len(all)-1].PAXRecords["SCHILY.xattr.security.capability"]; got == "" {
		t.Error("file capability is lost")
	}
}

func TestMergeReportsABrokenStream(t *testing.T) {
	broken := io.LimitReader(tarOf(t, file("a", 5000)), 2000)
	if err := Merge(io.Discard, broken, epoch, func(string) bool { return false }, nil); err == nil {
		t.Error("a truncated stream went through")
	}
}

func TestDropper(t *testing.T) {
	d, err := NewDropper([]string{"usr/share/doc/**", "etc/ssh/ssh_host_*", "/var/log/**", "etc/hostname"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"usr/share/doc":             false,
		"usr/share/doc/bash":        true,
		"usr/share/doc/bash/a/b":    true,
		"usr/share/docs":            false,
		"etc/ssh/ssh_host_rsa_key":  true,
		"etc/ssh/ssh_config":        false,
		"etc/ssh/ssh_host_x/nested": false,
		"var/log":                   false,
		"var/log/apt/term.log":      true,
		"etc/hostname":              true,
		"etc/hostname.d":            false,
	} {
		if got := d.Drop(name); got != want {
			t.Errorf("Drop(%q) = %v, want %v", name, got, want)
		}
	}
	if _, err := NewDropper([]string{"a["}); err == nil || !strings.Contains(err.Error(), `"a["`) {
		t.Errorf("a broken pattern gives %v", err)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{"./": ".", "./a/": "a", "a/b": "a/b", "/a": "a", "./../../x": "x"} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}
