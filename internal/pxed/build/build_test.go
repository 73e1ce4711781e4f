package build_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/progress"
	"github.com/slipway/slipway/internal/pxed/build"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
)

func TestServesWhatTheIndexNames(t *testing.T) {
	files := buildtest.Contents()
	b := buildtest.Open(t, files)
	for name, data := range files {
		f, file, err := b.Open(name)
		if strings.HasPrefix(name, "seeds/") {
			if !errors.Is(err, build.ErrUnknown) {
				t.Errorf("%s: a seed is served to everybody: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		f.Close()
		if err != nil || !bytes.Equal(got, data) || file.Digest != digest.Of(data) || file.Size != int64(len(data)) {
			t.Errorf("%s: %d bytes, %+v, %v", name, len(got), file, err)
		}
	}
	for _, name := range []string{"", ".", "..", "../etc/passwd", "netboot", "netboot/", "netboot/../netboot/vmlinuz", "NETBOOT/vmlinuz", "/etc/passwd"} {
		if _, _, err := b.Open(name); !errors.Is(err, build.ErrUnknown) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{artifact.IndexName, artifact.SignatureName} {
		if !b.Has(name) {
			t.Errorf("%s is not served", name)
		}
	}
}

func TestRefusesEveryFlippedByte(t *testing.T) {
	for name := range buildtest.Contents() {
		if strings.HasPrefix(name, "seeds/") {
			continue // neither served nor read
		}
		dir := buildtest.Write(t, buildtest.Contents())
		data := buildtest.Contents()[name]
		data[len(data)/2] ^= 1
		buildtest.Put(t, dir, name, data)
		if _, err := open(t, dir); !errors.Is(err, digest.ErrMismatch) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusesOtherBuilds(t *testing.T) {
	stranger := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
	dir := buildtest.Write(t, buildtest.Contents())
	_, err := build.Open(t.Context(), dir, stranger.Public().(ed25519.PublicKey), progress.Nop{})
	if !errors.Is(err, artifact.ErrWrongKey) || diag.HintOf(err) == "" {
		t.Errorf("another key: %v", err)
	}
	for _, name := range []string{artifact.IndexName, artifact.SignatureName, "netboot/vmlinuz"} {
		dir := buildtest.Write(t, buildtest.Contents())
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	longer := append(buildtest.Contents()["netboot/vmlinuz"], 'x')
	buildtest.Put(t, dir, "netboot/vmlinuz", longer)
	if _, err := open(t, dir); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("a longer file: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "netboot/vmlinuz")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "netboot/vmlinuz")); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, dir); err == nil {
		t.Error("a link out of the build was followed")
	}
	if _, err := open(t, filepath.Join(dir, "nonesuch")); diag.HintOf(err) == "" {
		t.Errorf("no directory: %v", err)
	}
}

// A build that takes the place of the served one changes nothing; one that is
// written into it is noticed.
func TestKeepsWhatWasVerified(t *testing.T) {
	files := buildtest.Contents()
	dir := buildtest.Write(t, files)
	b, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const name = "netboot/vmlinuz"
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	f, _, err := b.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(f)
	f.Close()
	if !bytes.Equal(got, files[name]) {
		t.Error("the file that took the name's place is served")
	}
	buildtest.Put(t, dir, "slipway-lab.raw.zst", []byte("changed"))
	if _, _, err := b.Open("slipway-lab.raw.zst"); !errors.Is(err, build.ErrChanged) {
		t.Errorf("a file was changed in place: %v", err)
	}
}

func open(t *testing.T, dir string) (*build.Build, error) {
	t.Helper()
	return build.Open(t.Context(), dir, buildtest.Public(), progress.Nop{})
}
