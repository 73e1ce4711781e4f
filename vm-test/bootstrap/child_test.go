package bootstrap

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/sequence"
)

// How a child is told what to do.
const (
	envKubeconfig = "SLIPWAY_TEST_KUBECONFIG" // path
	envValues     = "SLIPWAY_TEST_VALUES"     // JSON, further values for Cilium; with it, only the step with its release runs
	envBlock      = "SLIPWAY_TEST_BLOCK"      // stop for ever after the first step that did something
	envBundle     = "SLIPWAY_TEST_BUNDLE"     // directory of the bundle
)

// patience bounds every wait for a child. The machine may be busy.
const patience = 3 * time.Minute

// TestChild is the program that the other tests kill: it runs the steps.
func TestChild(t *testing.T) {
	path := os.Getenv(envKubeconfig)
	if path == "" {
		t.Skip("this is what other tests start")
	}
	config, err := os.ReadFile(path)
	must(t, err)
	r := newRig(t, load(t), config)
	r.values = values(t, os.Getenv(envValues))
	steps := r.steps(t)
	if os.Getenv(envValues) != "" {
		steps = r.helm(t)
	}
	runner := sequence.Runner{Now: time.Now, On: func(e sequence.Event) {
		fmt.Printf("%s %s: %s\n", e.Kind, e.Layer, e.Step)
		if e.Kind == sequence.Done && os.Getenv(envBlock) != "" {
			select {}
		}
	}}
	began := time.Now()
	_, err = runner.Run(t.Context(), steps)
	must(t, err)
	fmt.Printf("all steps are done %d %d %d\n", r.client.Requests(), peak(t), time.Since(began).Milliseconds())
}

// cost is what a run took.
type cost struct {
	requests, peak, milliseconds int64 // peak in bytes
}

func costs(t *testing.T, line string) (c cost) {
	t.Helper()
	_, err := fmt.Sscanf(line, "all steps are done %d %d %d", &c.requests, &c.peak, &c.milliseconds)
	must(t, err)
	return c
}

func values(t testing.TB, text string) (v map[string]any) {
	t.Helper()
	if text != "" {
		must(t, json.Unmarshal([]byte(text), &v))
	}
	return v
}

// child is a run in a process of its own.
type child struct {
	cmd   *exec.Cmd
	lines chan string // what it prints; closed when it has ended
	said  bytes.Buffer
}

// start starts a run. It dies with the test.
func (s *suite) start(t *testing.T, kubeconfig []byte, env ...string) *child {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/kubeconfig", kubeconfig, 0o600))
	c := &child{lines: make(chan string, 1000)}
	c.cmd = exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v", "-test.count=1")
	c.cmd.Env = append(os.Environ(), append(env, envKubeconfig+"="+dir+"/kubeconfig", envBundle+"="+s.parts.dir)...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.cmd.StdoutPipe()
	must(t, err)
	c.cmd.Stderr = c.cmd.Stdout
	must(t, c.cmd.Start())
	t.Cleanup(c.kill)
	go c.read(out)
	return c
}

func (c *child) read(out io.Reader) {
	defer close(c.lines)
	for s := bufio.NewScanner(out); s.Scan(); {
		c.lines <- s.Text()
	}
}

// await reads what the child prints until a line begins with one of the words.
func (c *child) await(t *testing.T, words ...string) string {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				t.Fatalf("the run ended and never said %q:\n%s", words, c.said.String())
			}
			c.said.WriteString(line + "\n")
			for _, w := range words {
				if strings.HasPrefix(line, w) {
					return line
				}
			}
		case <-late:
			t.Fatalf("the run has not said %q within %s:\n%s", words, patience, c.said.String())
		}
	}
}

// kill ends the run as a power cut would, and waits for its end.
func (c *child) kill() {
	c.cmd.Process.Kill() // ours; an error means that it has ended
	for range c.lines {
	}
	c.cmd.Wait()
}
