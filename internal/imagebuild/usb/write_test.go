package usb_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/artifact/gpt"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/imagebuild/usb"
	"github.com/slipway/slipway/internal/imagebuild/usb/usbtest"
	"github.com/slipway/slipway/internal/imagebuild/verify/buildtest"
	"github.com/slipway/slipway/internal/progress"
)

// build is the build that all tests write.
var build string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "usb-*")
	if err == nil {
		build = filepath.Join(dir, "build")
		err = buildtest.Build(context.Background(), build, buildtest.Default())
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func image(t *testing.T) *usb.Image {
	t.Helper()
	img, err := usb.OpenImage(build, buildtest.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	return img
}

// dirty is a file of size bytes, the start, middle and end of which hold noise:
// an old disk label, data in what becomes a hole, a label at the end.
func dirty(t *testing.T, size int64) *usbtest.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stick")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{3}).Read(noise)
	for _, at := range []int64{0, 100 << 20, 350 << 20, size - int64(len(noise))} {
		if _, err := f.WriteAt(noise, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	target, err := usbtest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

// same compares the partitions on the stick with those of the raw image.
func same(t *testing.T, disk artifact.Disk, stick io.ReaderAt) {
	t.Helper()
	raw, err := os.Open(filepath.Join(build, "disk.raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	first := disk.Partitions[0].Offset
	last := disk.Partitions[len(disk.Partitions)-1]
	a, b := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := first; at < last.Offset+last.Size; at += int64(len(a)) {
		_, errA := raw.ReadAt(a, at)
		_, errB := stick.ReadAt(b, at)
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Fatalf("differs in %s", disk.At(at))
		}
	}
}

func TestImageIsWrittenAndItsTableMoved(t *testing.T) {
	img := image(t)
	disk := img.Index.Disk
	for _, size := range []int64{disk.Size, disk.Size + 512, 1 << 30} {
		f := dirty(t, size)
		if err := usb.Write(t.Context(), img, f, progress.Nop{}); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		same(t, disk, f)
		grown := disk
		grown.Size = size
		if bad := gpt.Check(f, grown); len(bad) != 0 {
			t.Errorf("%d bytes: %q", size, bad)
		}
		out, err := exec.Command("sgdisk", "-v", f.Name()).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "No problems found") {
			t.Errorf("%d bytes: sgdisk -v: %v\n%s", size, err, out)
		}
		if size > disk.Size+1<<20 { // the image's own backup table must not linger on
			old := make([]byte, 512)
			if _, err := f.ReadAt(old, disk.Size-512); err != nil || !bytes.Equal(old, make([]byte, 512)) {
				t.Errorf("%d bytes: the old backup header is still there (%v)", size, err)
			}
		}
	}
}

// bootable reports whether firmware or a kernel could see anything at the start.
func bootable(t *testing.T, f *usbtest.File) bool {
	t.Helper()
	head := make([]byte, 1<<20)
	if _, err := f.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	return !bytes.Equal(head, make([]byte, len(head)))
}

func TestIncompleteStickDoesNotBoot(t *testing.T) {
	img := image(t)
	f := dirty(t, 1<<30)
	if err := usb.Write(t.Context(), img, f, progress.Nop{}); err != nil {
		t.Fatal(err)
	}
	all := f.Writes
	if !bootable(t, f) {
		t.Fatal("a complete one does not boot either")
	}
	unplugged := errors.New("no such device")
	for _, n := range []int{2, 3, 4, all / 2, all - 1, all} {
		f := dirty(t, 1<<30)
		f.Before = func(k int) error {
			if k >= n {
				return unplugged
			}
			return nil
		}
		err := usb.Write(t.Context(), img, f, progress.Nop{})
		if !errors.Is(err, unplugged) || !strings.Contains(err.Error(), "the device is not bootable") || diag.HintOf(err) == "" {
			t.Fatalf("write %d of %d: %v", n, all, err)
		}
		if bootable(t, f) {
			t.Fatalf("after %d of %d writes the stick has a start", n-1, all)
		}
	}
}

func TestInterruptLeavesAClearMessage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := dirty(t, 1<<30)
	f.Before = func(n int) error {
		if n == 5 {
			cancel()
		}
		return nil
	}
	err := usb.Write(ctx, image(t), f, progress.Nop{})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the device is not bootable and its old content is lost: interrupted") {
		t.Errorf("got %v", err)
	}
	if bootable(t, f) {
		t.Error("it boots")
	}
}

func TestStickThatDoesNotKeepItsBytesIsFound(t *testing.T) {
	img := image(t)
	for _, at := range []int64{200 << 20, 263 << 20, 1<<30 - 512} {
		f := dirty(t, 1<<30)
		// The last Sync before reading back is the one of the table at the end.
		syncs := 0
		f.After = func(f *usbtest.File) error {
			if syncs++; syncs != 3 {
				return nil
			}
			b := make([]byte, 512)
			_, err := f.File.ReadAt(b, at)
			b[3] ^= 0x20
			if err == nil {
				_, err = f.File.WriteAt(b, at)
			}
			return err
		}
		err := usb.Write(t.Context(), img, f, progress.Nop{})
		if err == nil || !strings.Contains(err.Error(), "read back something else") || !strings.Contains(diag.HintOf(err), "worn out") {
			t.Errorf("byte %d: %v", at, err)
		}
		if bootable(t, f) {
			t.Error("it boots")
		}
	}
}

func TestTooSmallDeviceIsLeftAlone(t *testing.T) {
	img := image(t)
	f := dirty(t, img.Index.Disk.Size-512)
	if err := usb.Write(t.Context(), img, f, progress.Nop{}); err == nil || f.Writes != 0 {
		t.Errorf("%d writes, %v", f.Writes, err)
	}
}

// job prepares a write to the stick of a machine, which is a file.
func job(t *testing.T, m usbtest.Machine, dir, serial string) (*usb.Job, error) {
	t.Helper()
	host := m.Host()
	host.Open = func(usb.Device) (usb.Target, error) { return dirty(t, 1<<30), nil }
	img, err := usb.OpenImage(dir, buildtest.PublicKey())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { img.Close() })
	return usb.Prepare(t.Context(), usb.Options{
		Content: img, Device: filepath.Join(m.Dir, "dev/sdb"), Serial: serial, Host: host, Progress: progress.Nop{},
	})
}

func TestRefusalComesBeforeAnyWrite(t *testing.T) {
	_, err := job(t, machine(t), build, "wrong")
	if exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "its serial number is 4C530001, not wrong") {
		t.Errorf("exit %d, %v", exit.Of(err), err)
	}
	_, err = job(t, machine(t, func(m usbtest.Machine) error { return m.Mount("8:17", "/mnt", "/dev/sdb1") }), build, "wrong")
	if exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "sdb1 is mounted on /mnt") || !strings.Contains(err.Error(), "not wrong") {
		t.Errorf("not all reasons: %v", err)
	}
}

func TestDamagedImageIsFoundBeforeAnyWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "build")
	if out, err := exec.Command("cp", "-a", "--sparse=always", build, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Truncate(filepath.Join(dir, "disk.raw.zst"), 100000); err != nil {
		t.Fatal(err)
	}
	if _, err := job(t, machine(t), dir, "4C530001"); err == nil || !strings.Contains(err.Error(), "checking image: chunk") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, artifact.IndexName), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := job(t, machine(t), dir, "4C530001"); !errors.Is(err, artifact.ErrBadSignature) {
		t.Errorf("got %v", err)
	}
}

func TestDeviceIsLookedAtAgainAfterAsking(t *testing.T) {
	m := machine(t)
	j, err := job(t, m, build, "4C530001")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Attribute("pci0000:00/usb2/2-1/serial", "OTHER\n"); err != nil {
		t.Fatal(err)
	}
	if err := j.Write(t.Context(), progress.Nop{}); exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "its serial number is OTHER") {
		t.Errorf("got %v", err)
	}
	if err := m.Attribute("pci0000:00/usb2/2-1/serial", "4C530001\n"); err != nil {
		t.Fatal(err)
	}
	if err := j.Write(t.Context(), progress.Nop{}); err != nil {
		t.Errorf("got %v", err)
	}
}
