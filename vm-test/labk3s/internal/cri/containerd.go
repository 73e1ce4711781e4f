// Package cri runs the host's containerd for the kubelet, as k3s runs the one that it
// brings, and imports container images from tarballs.
package cri

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Paths of k3s.
const (
	stateDir = "/run/k3s/containerd"
	Socket   = stateDir + "/containerd.sock"
)

// startTime bounds how long containerd may take to listen, on an emulated machine.
const startTime = 3 * time.Minute

// Containerd is the host's containerd with a configuration of ours.
type Containerd struct {
	Dir            string // the agent's directory
	PauseImage     string
	Snapshotter    string
	SystemdCgroups bool
}

func (c Containerd) root() string { return filepath.Join(c.Dir, "containerd") }
func (c Containerd) configFile() string {
	return filepath.Join(c.Dir, "etc", "containerd", "config.toml")
}

// config is the configuration in its version 2, which containerd 1.7 and 2.x read.
func (c Containerd) config() string {
	return fmt.Sprintf(`# Written at each start of k3s.
version = 2
root = %q
state = %q

[grpc]
  address = %q

[plugins."io.containerd.internal.v1.opt"]
  path = %q

[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "10010"
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  sandbox_image = %q

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/opt/cni/bin"
  conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = %q
  disable_snapshot_annotations = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = %v
`, c.root(), stateDir, Socket, filepath.Join(c.root(), "opt"), c.PauseImage, c.Snapshotter, c.SystemdCgroups)
}

// Start starts containerd and returns when it listens. The channel gives its end.
func (c Containerd) Start(ctx context.Context) (<-chan error, error) {
	for _, dir := range []string{filepath.Dir(c.configFile()), c.root()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(c.configFile(), []byte(c.config()), 0o600); err != nil {
		return nil, err
	}
	over := make(chan error, 1)
	go c.run(ctx, over)
	return over, awaitSocket(ctx, over)
}

// run runs containerd from a thread that lives as long: it is to die with us, and
// Linux takes the thread that started it for us. Containers go on; they are not its
// children but those of their shims.
func (c Containerd) run(ctx context.Context, over chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	log, err := os.Create(filepath.Join(c.root(), "containerd.log"))
	if err != nil {
		over <- err
		return
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, "containerd", "-c", c.configFile())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	slog.Info("Running containerd", "config", c.configFile(), "log", log.Name())
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		over <- fmt.Errorf("containerd: %w; see %s", err, log.Name())
		return
	}
	over <- nil
}

func awaitSocket(ctx context.Context, over <-chan error) error {
	deadline := time.After(startTime)
	for {
		conn, err := net.Dial("unix", Socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-over:
			return err
		case <-deadline:
			return fmt.Errorf("containerd does not listen: %w", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
