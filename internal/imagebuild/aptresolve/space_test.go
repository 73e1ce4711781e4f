package aptresolve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve/apttest"
)

// TestMain lets the test binary play a process whose temporary directory is
// small; that needs a mount, and so a user namespace.
func TestMain(m *testing.M) {
	if url := os.Getenv("APT_TEST_URL"); url != "" {
		playSmallDisk(url)
		return
	}
	os.Exit(m.Run())
}

func playSmallDisk(url string) {
	if err := unix.Mount("tmpfs", os.Getenv("TMPDIR"), "tmpfs", 0, "size=1m"); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, err := resolve(context.Background(), aptresolve.Request{
		Suite: "trixie", Components: []string{"main"}, Keyring: os.Getenv("APT_TEST_KEYRING"), Sets: rootfs("curl"),
		Mirrors: aptresolve.Mirrors{Debian: url + "/debian", Security: url + "/debian-security"},
	})
	fmt.Printf("space %t, hint %q, error: %v\n", errors.Is(err, aptresolve.ErrSpace), diag.HintOf(err), err)
}

func TestFullDisk(t *testing.T) {
	k := apttest.NewKey(t, "good")
	a, _ := full(t, k)
	a.Suite(t, "debian", "trixie", trixie+strings.Repeat("# padding, which no index has\n", 100_000), time.Hour)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "APT_TEST_URL="+a.URL, "APT_TEST_KEYRING="+k.Keyring, "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "space true") || !strings.Contains(string(out), "TMPDIR") {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("%s", out)
}
