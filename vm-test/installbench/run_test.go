package installbench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

// measure runs one of them on a disk that is full of old data: seconds, the peak of
// resident memory of all its processes in MiB, and their processor time.
func (m *box) measure(t *testing.T, y *yard, name string, c condition) []float64 {
	t.Helper()
	m.fill(t, y.rawSize)
	var cmd *exec.Cmd
	switch name {
	case ours:
		y.arm(t, m)
		cmd = m.install(y, c)
	case theirs:
		cmd = m.pipe(y, "conv=fsync")
	default:
		cmd = m.pipe(y, "conv=fsync", "oflag=direct")
	}
	start := time.Now()
	peak := m.run(t, cmd)
	took := time.Since(start)
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return []float64{took.Seconds(), float64(peak) / 1024, used.Seconds()}
}

// install is the installer's command.
func (m *box) install(y *yard, c condition) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err) // /proc is not there
	}
	cmd := m.host.Command(context.Background(), self)
	cmd.Env = append(os.Environ(), machineVariable+"="+y.url, "BENCH_MAC="+m.mac, "BENCH_SERIAL="+m.serial, "BENCH_DISK="+m.disk, fmt.Sprintf("BENCH_SIZE=%d", m.size))
	if c.zeros {
		cmd.Env = append(cmd.Env, "BENCH_ZEROS=1")
	}
	return cmd
}

// pipe is what people do without an installer.
func (m *box) pipe(y *yard, how ...string) *exec.Cmd {
	const script = `url=$1 disk=$2; shift 2; curl -sSf "$url" | zstd -dc | dd of="$disk" bs=4M iflag=fullblock status=none "$@"`
	return m.host.Command(context.Background(), "sh", append([]string{"-c", script, "sh", y.url + machine.PathArtifacts + y.image, m.disk}, how...)...)
}

// limit bounds an install.
const limit = 5 * time.Minute

// run runs a command to its end and gives the peak of its memory, KiB.
func (m *box) run(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return 0
	}
	late := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	defer late.Stop()
	ended := make(chan struct{})
	peak := make(chan int)
	go func() { peak <- watch(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	close(ended)
	if err != nil {
		t.Errorf("%s: %v\n%s", m.node, err, said.String())
	}
	return <-peak
}

// watch sums the peaks of resident memory that a process and its children have had,
// KiB. The kernel keeps each peak itself (VmHWM), so that only what happens in the
// last milliseconds before an end can be missed.
func watch(pid int, ended <-chan struct{}) int {
	peaks := map[int]int{}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			sum := 0
			for _, p := range peaks {
				sum += p
			}
			return sum
		case <-tick.C:
			look(pid, peaks)
		}
	}
}

func look(pid int, peaks map[int]int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err == nil {
		peaks[pid] = max(peaks[pid], kib)
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is good
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(children)) {
			var child int
			if _, err := fmt.Sscan(word, &child); err == nil {
				look(child, peaks)
			}
		}
	}
}
