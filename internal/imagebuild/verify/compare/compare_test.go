package compare

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/imagebuild/verify/buildtest"
)

// original is the build that the tests compare with.
var original string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "compare-*")
	if err == nil {
		original = filepath.Join(dir, "build")
		err = buildtest.Build(context.Background(), original, buildtest.Default())
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// copyOf is a copy of the build that a test may spoil.
func copyOf(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "build")
	if err := buildtest.Copy(t.Context(), original, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// variant builds again with one change.
func variant(t *testing.T, change func(*buildtest.Spec)) string {
	t.Helper()
	spec := buildtest.Default()
	for _, m := range []*map[string]string{&spec.Root, &spec.ESP, &spec.Initrd, &spec.Seed} {
		*m = maps.Clone(*m)
	}
	change(&spec)
	dir := filepath.Join(t.TempDir(), "variant")
	if err := buildtest.Build(t.Context(), dir, spec); err != nil {
		t.Fatal(err)
	}
	return dir
}

func difference(t *testing.T, a, b string) string {
	t.Helper()
	d, err := Builds(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	if d == nil {
		return ""
	}
	return d.String()
}

func TestEqualBuildsDoNotDiffer(t *testing.T) {
	if got := difference(t, original, variant(t, func(*buildtest.Spec) {})); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestCauseOfADifferenceIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*buildtest.Spec)
		want   string
	}{
		"content in slot": {func(s *buildtest.Spec) { s.Root["etc/os-release"] = "ID=debiaN\n" },
			"etc/os-release differs in content"},
		"last file in slot": {func(s *buildtest.Spec) { s.Root["usr/lib/big"] = "x" + s.Root["usr/lib/big"][1:] },
			"usr/lib/big differs in content"},
		"size in slot": {func(s *buildtest.Spec) { s.Root["etc/os-release"] = "ID=x\n" },
			`etc/os-release is "R 1700000000 644 0 0 5" in the first build`},
		"more in slot":   {func(s *buildtest.Spec) { s.Root["etc/a b"] = "" }, `slot.squashfs: byte`},
		"initrd content": {func(s *buildtest.Spec) { s.Initrd["init"] = "nodeiniT" }, "initrd.zst: byte"},
		"initrd entry":   {func(s *buildtest.Spec) { s.Initrd["zzz"] = "" }, "zzz is only in the second build"},
		"esp":            {func(s *buildtest.Spec) { s.ESP["EFI/BOOT/BOOTX64.EFI"] = "MZ Loader" }, "EFI/BOOT/BOOTX64.EFI differs in content"},
		"esp path":       {func(s *buildtest.Spec) { s.ESP["EFI/x"] = "" }, "partition 1 (slipway-esp)"},
		"seed":           {func(s *buildtest.Spec) { s.Seed["user-data"] = "#cloud-config\nhostname: n2\n" }, `seeds/n1/user-data: line 2: "hostname: n1" in the first build, "hostname: n2" in the second`},
	} {
		t.Run(name, func(t *testing.T) {
			got := difference(t, original, variant(t, c.change))
			want := c.want
			if name == "size in slot" {
				want = strings.Replace(want, " 5\"", " 10\"", 1)
			}
			if !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			t.Log(got)
		})
	}
}

func TestPlantedBytesAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		at   int64
		want string
	}{
		"table":      {"disk.raw", 600, "disk.raw: byte 600, primary GPT: partitions or their table differ"},
		"slot hole":  {"disk.raw", 300 << 20, "disk.raw: byte 314572800, partition 2 (slipway-a), byte 39845888: same files"},
		"esp free":   {"disk.raw", 200 << 20, "partition 1 (slipway-esp), byte 207618048: same files, but other times, clusters or free space"},
		"slot b":     {"disk.raw", 380 << 20, "partition 3 (slipway-b), byte"},
		"compressed": {"disk.raw.zst", 30, "disk.raw.zst: byte 30, chunk 0 (protective MBR): the same image is compressed in another way"},
		"qcow2":      {"disk.qcow2", 70000, "disk.qcow2: byte 70000: content differs"},
		"slot data":  {"slot.squashfs", 300000, "slot.squashfs: byte 300000: usr/lib/big differs in content"},
		"slot start": {"slot.squashfs", 0, "slot.squashfs: byte 0: content differs, and one of the two cannot be read: unsquashfs"},
		"verity":     {"slot.squashfs", -10, "slot.squashfs: byte"},
		"signature":  {artifact.SignatureName, 100, "index.json.sig: line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t)
			if err := buildtest.Flip(dir, c.file, c.at); err != nil {
				t.Fatal(err)
			}
			got := difference(t, original, dir)
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	dir := copyOf(t)
	if err := os.Remove(filepath.Join(dir, "vmlinuz")); err != nil {
		t.Fatal(err)
	}
	if got := difference(t, original, dir); got != "vmlinuz: is missing in the second build" {
		t.Errorf("got %q", got)
	}
	if got := difference(t, dir, original); got != "vmlinuz: is missing in the first build" {
		t.Errorf("got %q", got)
	}
}

func TestReproduceBuildsBesideAndLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "build")
	if err := buildtest.Copy(t.Context(), original, dir); err != nil {
		t.Fatal(err)
	}
	same := func(ctx context.Context, out string) error { return buildtest.Copy(ctx, original, out) }
	if d, err := Reproduce(t.Context(), dir, same); err != nil || d != nil {
		t.Errorf("%v, %v", d, err)
	}
	signedByAnother := func(ctx context.Context, out string) error {
		return errors.Join(buildtest.Copy(ctx, original, out), buildtest.Flip(out, artifact.SignatureName, 60))
	}
	if d, err := Reproduce(t.Context(), dir, signedByAnother); err != nil || d != nil {
		t.Errorf("another signature: %v, %v", d, err)
	}
	other := func(ctx context.Context, out string) error {
		return errors.Join(buildtest.Copy(ctx, original, out), buildtest.Flip(out, "vmlinuz", 3))
	}
	if d, err := Reproduce(t.Context(), dir, other); err != nil || d == nil || d.String() != "vmlinuz: byte 3: content differs" {
		t.Errorf("%v, %v", d, err)
	}
	broken := errors.New("no space")
	if _, err := Reproduce(t.Context(), dir, func(context.Context, string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
