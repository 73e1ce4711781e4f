package rounds

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time, of user and system, that a process and the children
// that it has now have used so far.
func CPU(pid int) time.Duration {
	used := clock(pid)
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is good
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(text)) {
			var n int
			if _, err := fmt.Sscan(child, &n); err == nil {
				used += CPU(n)
			}
		}
	}
	return used
}

// clock reads the processor time clock of another process, which counts
// nanoseconds where /proc/PID/stat counts hundredths of a second. Its number is made
// as clock_getcpuclockid(3) makes it; 2 means that the scheduler's account is read.
func clock(pid int) time.Duration {
	const ofScheduler = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofScheduler), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
