package repro

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cas"
)

// buildLimit bounds one build, cold, when another one runs beside it.
const buildLimit = 15 * time.Minute

// workshop is a place to build in: copies of the programs and profiles, and a
// cache with all inputs but no stage of a build.
type workshop struct {
	dir string // readable by every user
	env []string
	in  []string // command that another command is run in, such as unshare
}

// open makes a workshop. The directory and the ways to it are open to other
// users, which those of testing.T are not.
func open(t *testing.T, name string) *workshop {
	t.Helper()
	dir, err := os.MkdirTemp("", "slipway-"+name+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &workshop{dir: dir}
	for _, sub := range []string{".", "bin", "profiles", "cache", "tmp", "home"} {
		must(t, os.MkdirAll(w.path(sub), 0o755))
		must(t, os.Chmod(w.path(sub), 0o755))
	}
	for _, program := range []string{"imagebuild", "nodeinit"} {
		must(t, copyFile("../../bin/"+program, w.path("bin", program)))
	}
	profiles, err := filepath.Glob("../../profiles/*")
	must(t, err)
	for _, p := range profiles {
		must(t, copyFile(p, w.path("profiles", filepath.Base(p))))
	}
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.path("home"), "TMPDIR=" + w.path("tmp")}
	return w
}

func (w *workshop) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}

// fill gives the workshop's cache what the user's cache has: the inputs, without
// any stage. Blobs are read-only, so that links to them do for everybody.
func (w *workshop) fill(t *testing.T) {
	t.Helper()
	from, err := cas.DefaultDir(os.Getenv)
	must(t, err)
	must(t, linkTree(filepath.Join(from, "sha256"), w.path("cache", "sha256")))
}

// fillFrom gives the workshop everything that another one has in its cache.
func (w *workshop) fillFrom(t *testing.T, other *workshop) {
	t.Helper()
	must(t, linkTree(other.path("cache"), w.path("cache")))
}

// outcome is how a build ended.
type outcome struct {
	code   int    // exit code; -1 when it was killed
	said   string // standard error
	stdout string
	peak   int64 // largest resident set of imagebuild itself, without its children, in bytes
	took   time.Duration
}

// run starts imagebuild in the workshop's directory and waits for its end.
func (w *workshop) run(ctx context.Context, t *testing.T, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	line := append(append([]string{}, w.in...), w.path("bin", "imagebuild"))
	line = append(line, args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.dir, w.env, &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	start := time.Now()
	must(t, cmd.Start())
	peak := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stderr.String(), stdout.String(), peak(), time.Since(start)}
}

// build runs imagebuild build of the lab with its output in the workshop's out/.
func (w *workshop) build(ctx context.Context, t *testing.T, more ...string) outcome {
	t.Helper()
	return w.run(ctx, t, append([]string{"build", "-p", "profiles/lab.yaml", "--node", "n1",
		"-O", w.path("out", "lab"), "--cache", w.path("cache"), "--key", w.path("key")}, more...)...)
}

// succeed is build that must work.
func (w *workshop) succeed(t *testing.T) outcome {
	t.Helper()
	o := w.build(t.Context(), t)
	if o.code != 0 {
		t.Fatalf("the build ends with exit code %d:\n%s", o.code, o.said)
	}
	return o
}

// watchMemory reads a process's high-water mark until the process is gone and
// the returned function is called. The mark never falls, so that only its last
// rise before the end can be missed. A command that becomes imagebuild by exec
// keeps its process id and begins a new mark.
func watchMemory(pid int) (peak func() int64) {
	done, result := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for {
			most = max(most, highWater(pid))
			select {
			case <-done:
				result <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(done); return <-result }
}

func highWater(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0 // a zombie has no such line
	}
	return kib << 10
}

// link makes a hard link, or a copy where that cannot be.
func link(from, to string) error {
	if err := os.Link(from, to); err == nil {
		return nil
	}
	return copyFile(from, to)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode())
}

// linkTree makes a copy of a tree whose files are links.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return link(p, filepath.Join(to, rel))
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
