package cas_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/digest"
)

// player starts this test binary in another role.
func player(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "CAS_TEST_PLAY="+role, "CAS_TEST_DIR="+dir)
	return cmd
}

// killed runs a role until it is in the middle of its work, and kills it there.
// before is called while it still lives.
func killed(t *testing.T, role, dir string, before func()) {
	t.Helper()
	cmd := player(t, role, dir)
	if _, err := cmd.StdinPipe(); err != nil { // stays open: the player waits on it
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("player said %q, %v", line, err)
	}
	before()
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the player ended by itself")
	}
}

// age makes temporary files older than what may still be in the making.
func age(t *testing.T, c *cas.Cache) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for _, name := range leftovers(t, c) {
		if err := os.Chtimes(filepath.Join(c.Dir(), name), old, old); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKilledWorkIsSweptAndNeverNamed(t *testing.T) {
	for _, role := range []string{"blob", "stage"} {
		t.Run(role, func(t *testing.T) {
			c := open(t)
			killed(t, role, c.Dir(), func() {
				age(t, c)
				if _, err := cas.Open(c.Dir()); err != nil {
					t.Fatal(err)
				}
				if l := leftovers(t, c); len(l) != 1 {
					t.Errorf("while its maker lived, a sweep left %v", l)
				}
			})
			if c.Has(digest.Of(blob(1, 1<<20))) {
				t.Error("half a blob has a name")
			}
			if _, ok := c.Stage("squash", digest.Of([]byte("key"))); ok {
				t.Error("half a stage has a name")
			}
			if _, err := cas.Open(c.Dir()); err != nil {
				t.Fatal(err)
			}
			if l := leftovers(t, c); len(l) != 0 {
				t.Errorf("after the kill a sweep left %v", l)
			}
		})
	}
}

func TestYoungFilesAreNotSwept(t *testing.T) {
	c := open(t)
	name := filepath.Join(c.Dir(), "tmp", "blob-1")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cas.Open(c.Dir()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err != nil {
		t.Errorf("swept a file that its maker may be about to lock: %v", err)
	}
}

func TestKilledDownloadGoesOn(t *testing.T) {
	c, b := open(t), blob(1, 1<<20)
	killed(t, "part", c.Dir(), func() {})
	age(t, c)
	if _, err := cas.Open(c.Dir()); err != nil {
		t.Fatal(err)
	}
	p, err := c.Partial(t.Context(), digest.Of(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	n, err := p.Size()
	if err != nil || n != 1<<19 {
		t.Fatalf("%d bytes are there, %v", n, err)
	}
	if _, err := p.Write(b[n:]); err != nil {
		t.Fatal(err)
	}
	if err := p.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(c.Path(digest.Of(b))); !bytes.Equal(got, b) {
		t.Errorf("read back %d bytes, %v", len(got), err)
	}
	if l := leftovers(t, c); len(l) > 0 {
		t.Errorf("left %v", l)
	}
}

func TestProcessesShareACache(t *testing.T) {
	c := open(t)
	var players []*exec.Cmd
	var outs []*bytes.Buffer
	for range 4 {
		cmd := player(t, "race", c.Dir())
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		players, outs = append(players, cmd), append(outs, out)
	}
	for i, cmd := range players {
		if err := cmd.Wait(); err != nil || outs[i].String() != "done\n" {
			t.Errorf("process %d: %v, said %s", i, err, outs[i])
		}
	}
	if n, err := c.VerifyAll(t.Context()); n != 40 || err != nil {
		t.Errorf("verified %d blobs: %v", n, err)
	}
	if l := leftovers(t, c); len(l) > 0 {
		t.Errorf("left %v", l)
	}
}

func TestFullDisk(t *testing.T) {
	cmd := player(t, "full", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, what := range []string{"room", "put", "stage", "part"} {
		line := ""
		for l := range strings.Lines(string(out)) {
			if strings.HasPrefix(l, what+":") {
				line = l
			}
		}
		if !strings.Contains(line, cas.ErrFull.Error()) || !strings.Contains(line, "hint true, left 0") {
			t.Errorf("%s: %q", what, line)
		}
	}
}
