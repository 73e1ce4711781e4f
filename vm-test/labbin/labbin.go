// Package labbin builds the programs of vm-test/labk3s, which is a Go module of its
// own, and keeps them under a name made of what they were built from. The first
// build takes minutes, any other time it takes none.
package labbin

import (
	"bytes"
	"context"
	"fmt"
	"golang.org/x/sys/unix"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// kubernetes is the version that the programs say they are. It is the version of
// the module in labk3s's go.mod; programs built by Go alone would call themselves
// v0.0.0, and charts refuse that. The stand-in for k3s says what it is behind it.
const (
	kubernetes = "v1.34.4"
	standIn    = "+labk3s1"
)

func versionOf(program string) string {
	if program == "k3s" {
		return kubernetes + standIn
	}
	return kubernetes
}

// Build returns the path of a program of labk3s/cmd, and builds it when its sources,
// the versions of its modules or the Go tool have changed. Processes that ask at the
// same time build once. The error holds what the Go tool said.
func Build(ctx context.Context, program string) (string, error) {
	module, err := moduleDir()
	if err != nil {
		return "", err
	}
	key, err := sourceKey(module, program)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "slipway", "labk3s", key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Dir(dir))
	if err != nil {
		return "", err
	}
	defer unlock()
	bin := filepath.Join(dir, program)
	if _, err := os.Stat(bin); err == nil {
		now := time.Now()
		return bin, os.Chtimes(dir, now, now)
	}
	sweep(filepath.Dir(dir))
	return bin, compile(ctx, module, program, bin)
}

// unused is how long a program is kept that nobody has asked for.
const unused = 3 * 24 * time.Hour

// sweep removes programs made of sources that nobody has any more. It is no matter
// when it cannot.
func sweep(cache string) {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return
	}
	for _, e := range entries {
		if st, err := e.Info(); err == nil && time.Since(st.ModTime()) > unused {
			os.RemoveAll(filepath.Join(cache, e.Name()))
		}
	}
}

// moduleDir finds labk3s beside this package: tests run where the sources are.
func moduleDir() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/slipway/slipway").Output()
	if err != nil {
		return "", fmt.Errorf("finding the sources of labk3s: %w", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "vm-test", "labk3s")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("the sources of labk3s are not there: %w", err)
	}
	return dir, nil
}

// lock makes others wait that build at the same time; it ends with the process.
func lock(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return f.Close, nil
}

func compile(ctx context.Context, module, program, bin string) error {
	half := bin + ".half"
	const at = " -X k8s.io/component-base/version."
	ldflags := "-s -w" + at + "gitVersion=" + versionOf(program) + at + "gitMajor=1" + at + "gitMinor=34" +
		at + "gitCommit=unknown" + at + "gitTreeState=clean"
	cmd := exec.CommandContext(ctx, "nice", "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags", ldflags, "-o", half, "./cmd/"+program)
	cmd.Dir = module
	// The settings of our own module are not those of this one.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s of labk3s: %w\n%s", program, err, bytes.TrimSpace(out))
	}
	return os.Rename(half, bin)
}
