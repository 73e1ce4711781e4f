package controlplane

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// process is a program of the plane with a log of its own.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	over chan struct{} // closed when it has ended
}

// start runs a part of the control plane until kill or the end of the test.
func (p *Plane) start(name, part string, args ...string) *process {
	p.t.Helper()
	s := &process{name: name, log: p.path(name + ".log"), over: make(chan struct{})}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(p.bin, append([]string{part}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		p.t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		s.cmd.Wait()
		close(s.over)
	}()
	p.t.Cleanup(func() { s.end(p.t) })
	return s
}

func (s *process) end(t testing.TB) {
	s.kill()
	if t.Failed() {
		t.Logf("%s said at the end:\n%s", s.name, s.tail())
	}
}

// kill ends the process as a loss of power would.
func (s *process) kill() {
	s.cmd.Process.Kill() // it is ours; an error means that it has ended
	<-s.over
}

// alive tells why nothing can be expected of the process any more.
func (s *process) alive() error {
	select {
	case <-s.over:
		return fmt.Errorf("%s has ended: %s", s.name, s.cmd.ProcessState)
	default:
		return nil
	}
}

// tail is what a reader wants to see of the log.
func (s *process) tail() []byte {
	const enough = 4000 // bytes
	log, err := os.ReadFile(s.log)
	if err != nil {
		return []byte(err.Error())
	}
	return log[max(0, len(log)-enough):]
}
