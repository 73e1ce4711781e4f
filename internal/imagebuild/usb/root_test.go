package usb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/imagebuild/usb"
	"github.com/slipway/slipway/internal/progress"
)

// TestLoopDevice writes through a real block device: exclusive opening and direct
// transfers. It needs root and loop devices, and is asked for with
// SLIPWAY_TEST_ROOT=1.
func TestLoopDevice(t *testing.T) {
	if os.Getenv("SLIPWAY_TEST_ROOT") == "" {
		t.Skip("needs root and loop devices: set SLIPWAY_TEST_ROOT=1")
	}
	file := filepath.Join(t.TempDir(), "stick")
	run := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("truncate", "-s", "1G", file)
	loop := run("losetup", "--find", "--show", "--partscan", file)
	t.Cleanup(func() { run("losetup", "--detach", loop) })

	d, err := usb.Host{}.Find(loop)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(usb.Candidate(d), "\n"); !strings.Contains(got, "it is not a whole disk: loop device") {
		t.Errorf("a loop device is a candidate: %q", got)
	}
	// What the decision forbids is done here on purpose, below it.
	target, err := usb.OpenDevice(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := usb.OpenDevice(d); err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("opened twice: %v", err)
	}
	if err := usb.Write(t.Context(), image(t), target, progress.Nop{}); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	if out := run("sgdisk", "-v", loop); !strings.Contains(out, "No problems found") {
		t.Errorf("sgdisk -v:\n%s", out)
	}
	d.Size -= 512
	if _, err := usb.OpenDevice(d); err == nil || !strings.Contains(err.Error(), "has 1073741824 bytes now") {
		t.Errorf("another size: %v", err)
	}
}
