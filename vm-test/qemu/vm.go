package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/slipway/slipway/internal/hosttool"
)

// VM is a machine that is switched on.
type VM struct {
	Started time.Time  // when it was switched on
	Serial  []*Console // its serial ports, in order

	cfg    Config
	cmd    *exec.Cmd
	qmp    *monitor
	said   *os.File      // QEMU's own standard error
	exited chan struct{} // closed when the process has ended
	err    error         // how it ended; valid once exited is closed
	ssh    []string      // forwarded SSH ports, host:port, in the order of the cards that have one
}

// startDeadline bounds how long QEMU may take to answer on its monitor.
const startDeadline = 30 * time.Second

// Start switches a machine on. The machine dies with the caller's process, and
// with ctx. The caller ends it with Close.
func Start(ctx context.Context, c Config) (*VM, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	v := &VM{cfg: c, exited: make(chan struct{})}
	for i := range Serials {
		v.Serial = append(v.Serial, &Console{path: c.serialFile(i), vm: v})
	}
	if err := v.spawn(ctx); err != nil {
		return nil, fmt.Errorf("starting machine %s: %w", c.Name, err)
	}
	if err := v.greet(ctx); err != nil {
		v.Close()
		return nil, fmt.Errorf("starting machine %s: %w%s", c.Name, err, v.complaint())
	}
	return v, nil
}

// prepare makes the files that QEMU wants to find.
func (c Config) prepare() error {
	if c.Firmware == BIOS {
		return nil
	}
	if _, err := os.Stat(c.NVRAM); err == nil {
		return nil
	}
	vars, err := os.ReadFile(ovmfVars)
	if err != nil {
		return fmt.Errorf("reading firmware variables (Debian package ovmf): %w", err)
	}
	return os.WriteFile(c.NVRAM, vars, 0o600)
}

func (v *VM) spawn(ctx context.Context) error {
	path, err := hosttool.Find("qemu-system-x86_64")
	if err != nil {
		return err
	}
	v.said, err = os.Create(v.cfg.file("qemu"))
	if err != nil {
		return err
	}
	v.cmd = exec.CommandContext(ctx, path, v.cfg.args()...)
	v.cmd.Stderr = v.said
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := v.plugIn(); err != nil {
		return err
	}
	v.Started = time.Now()
	err = v.cmd.Start()
	for _, theirs := range v.cmd.ExtraFiles {
		theirs.Close()
	}
	if err != nil {
		return err
	}
	go func() {
		v.err = v.cmd.Wait()
		close(v.exited)
	}()
	return nil
}

// plugIn makes the sockets of the monitor and the serial ports.
func (v *VM) plugIn() error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	v.qmp = newMonitor(ours)
	v.cmd.ExtraFiles = []*os.File{theirs}
	for _, c := range v.Serial {
		if ours, theirs, err = socketPair(); err != nil {
			return err
		}
		c.wire = ours
		v.cmd.ExtraFiles = append(v.cmd.ExtraFiles, theirs)
		// QEMU writes the file that is read; this only keeps the socket from
		// filling up. It ends with QEMU.
		go io.Copy(io.Discard, ours)
	}
	return nil
}

// greet opens the monitor and asks which ports were chosen.
func (v *VM) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	if err := v.qmp.handshake(ctx); err != nil {
		return err
	}
	var err error
	v.ssh, err = v.qmp.forwards(ctx)
	for _, n := range v.cfg.NICs {
		if n.Tap != "" && n.SSH.IsValid() {
			v.ssh = append(v.ssh, netip.AddrPortFrom(n.SSH, 22).String())
		}
	}
	return err
}

// complaint is what QEMU said on its standard error, for an error message.
func (v *VM) complaint() string {
	text, err := os.ReadFile(v.said.Name())
	if err != nil || len(text) == 0 {
		return ""
	}
	return "\nqemu said: " + string(text)
}

// SSHAddress is the first forwarded SSH port, host:port.
func (v *VM) SSHAddress() string { return v.ssh[0] }

// Exited is closed when the machine is off.
func (v *VM) Exited() <-chan struct{} { return v.exited }

// Wait waits until the machine has switched itself off.
func (v *VM) Wait(ctx context.Context, limit time.Duration) error {
	select {
	case <-v.exited:
		return v.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(limit):
		return fmt.Errorf("machine %s is not off after %s; its console ends in:\n%s", v.cfg.Name, limit, v.Serial[0].Tail())
	}
}

// Execute runs one monitor command (QMP, qapi documentation); result may be nil.
func (v *VM) Execute(ctx context.Context, command string, args, result any) error {
	return v.qmp.execute(ctx, command, args, result)
}

// PressPower presses the power button; the guest does what it likes about it.
func (v *VM) PressPower(ctx context.Context) error {
	return v.Execute(ctx, "system_powerdown", nil, nil)
}

// Reset presses the reset button.
func (v *VM) Reset(ctx context.Context) error { return v.Execute(ctx, "system_reset", nil, nil) }

// PullCable takes the cable out of a card, or puts it back: the guest sees its link
// go down and come up.
func (v *VM) PullCable(ctx context.Context, card int, out bool) error {
	args := map[string]any{"name": fmt.Sprintf("card%d", card), "up": !out}
	return v.Execute(ctx, "set_link", args, nil)
}

// PullPlug switches the machine off at once and waits for it.
func (v *VM) PullPlug(ctx context.Context) error {
	if err := v.Execute(ctx, "quit", nil, nil); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return v.Wait(ctx, startDeadline)
}

// Close ends the machine if it still runs and releases what it held. It is safe
// to call after the machine has ended.
func (v *VM) Close() {
	v.cmd.Process.Kill() // an error means that it is gone already
	<-v.exited
	v.qmp.close()
	for _, c := range v.Serial {
		c.wire.Close()
	}
	v.said.Close()
}

// sendBuffer is the room of QEMU's end, in bytes. A serial port writes single bytes,
// each of which counts for some 800 here, so the usual 200 KiB are full after a few
// lines when the reader is late; QEMU then tries a few times and drops what is left.
const sendBuffer = 64 << 20

// socketPair returns the two ends of a connection: the monitor needs no name in
// the file system, and so no path that could be too long or left behind.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making the monitor's socket: %w", err)
	}
	if err := syscall.SetsockoptInt(fds[1], syscall.SOL_SOCKET, syscall.SO_SNDBUFFORCE, sendBuffer); err != nil {
		// Without privilege: as much as the system grants.
		syscall.SetsockoptInt(fds[1], syscall.SOL_SOCKET, syscall.SO_SNDBUF, sendBuffer)
	}
	return os.NewFile(uintptr(fds[0]), "monitor"), os.NewFile(uintptr(fds[1]), "monitor"), nil
}
