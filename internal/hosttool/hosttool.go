// Package hosttool runs the programs of the build host: the one gate through
// which imagebuild starts another process. Every child gets the same small
// environment, whatever the caller's locale, time zone or PATH, and dies with us.
package hosttool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/slipway/slipway/internal/diag"
)

// searchPath is where tools are looked for; sbin is not in a user's PATH on Debian.
var searchPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/go/bin"}

// ErrMissing is wrapped by the error for a tool that is not installed.
var ErrMissing = errors.New("program not found")

// Find returns the path of a tool. The error of a missing one names the Debian
// package that has it, when known, and the command that installs it.
func Find(name string) (string, error) {
	if name == "go" { // Go's own archives install outside of the directories of a distribution
		if p, err := exec.LookPath(name); err == nil {
			return filepath.Abs(p)
		}
	}
	for _, dir := range searchPath {
		p := filepath.Join(dir, name)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", diag.WithHint(fmt.Errorf("%s: %w", name, ErrMissing), "run make deps, or apt-get install "+packageOf(name))
}

// packageOf names the Debian package that ships a tool.
func packageOf(name string) string {
	switch name {
	case "mksquashfs", "unsquashfs":
		return "squashfs-tools"
	case "mkfs.vfat", "fsck.vfat":
		return "dosfstools"
	case "mcopy", "mmd", "mdir", "mtype":
		return "mtools"
	case "veritysetup":
		return "cryptsetup-bin"
	case "qemu-img":
		return "qemu-utils"
	case "depmod":
		return "kmod"
	case "newuidmap":
		return "uidmap"
	case "unshare":
		return "util-linux"
	case "apt-ftparchive":
		return "apt-utils"
	case "dpkg-deb":
		return "dpkg"
	case "ssh-keygen":
		return "openssh-client"
	case "mke2fs", "e2fsck":
		return "e2fsprogs"
	case "apt-get", "apt-cache":
		return "apt"
	case "gpg", "gpgconf":
		return "gnupg"
	case "go":
		return "golang-go"
	case "sgdisk":
		return "gdisk"
	default:
		return name
	}
}

// Cmd is one run of a tool.
type Cmd struct {
	Name   string   // program name, looked up with Find
	Args   []string // arguments
	Dir    string   // working directory; "" is the caller's
	Env    []string // added to the clean environment
	Epoch  int64    // SOURCE_DATE_EPOCH, seconds; 0 leaves it unset
	Stdin  io.Reader
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil keeps the end of it for the error message only
}

// Run runs the tool to its end. An error carries the end of what the tool said.
func Run(ctx context.Context, c Cmd) error {
	path, err := Find(c.Name)
	if err != nil {
		return err
	}
	var tail tailBuffer
	cmd := exec.CommandContext(ctx, path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = environment(c)
	cmd.Stdin = c.Stdin
	cmd.Stdout = c.Stdout
	cmd.Stderr = &tail
	if c.Stderr != nil {
		cmd.Stderr = io.MultiWriter(c.Stderr, &tail)
	}
	// A killed build must not leave children that go on writing.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", c.Name, context.Cause(ctx))
		}
		return fmt.Errorf("%s: %w%s", c.Name, err, tail.said())
	}
	return nil
}

// Output runs the tool and returns its standard output. It is for small results;
// large ones belong into Cmd.Stdout.
func Output(ctx context.Context, c Cmd) ([]byte, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := Run(ctx, c)
	return out.Bytes(), err
}

func environment(c Cmd) []string {
	env := []string{"PATH=" + strings.Join(searchPath, ":"), "LC_ALL=C.UTF-8", "TZ=UTC", "HOME=/nonexistent"}
	if tmp := os.Getenv("TMPDIR"); tmp != "" {
		env = append(env, "TMPDIR="+tmp)
	}
	if c.Epoch != 0 {
		env = append(env, "SOURCE_DATE_EPOCH="+strconv.FormatInt(c.Epoch, 10))
	}
	return slices.Concat(env, c.Env)
}

// tailBuffer keeps the last 4 KiB of what a tool says.
type tailBuffer struct{ b []byte }

func (t *tailBuffer) Write(p []byte) (int, error) {
	const keep = 4 << 10
	t.b = append(t.b, p...)
	if len(t.b) > keep {
		t.b = slices.Clone(t.b[len(t.b)-keep:])
	}
	return len(p), nil
}

func (t *tailBuffer) said() string {
	s := strings.TrimSpace(string(t.b))
	if s == "" {
		return ""
	}
	return ", it said:\n    " + strings.ReplaceAll(s, "\n", "\n    ")
}
