package listen

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Holder names the program that has a local port open, as "dnsmasq (pid 812)", or
// is "" when that cannot be seen: it may be in another network namespace's
// process tree, or not ours to look at.
func Holder(network string, port uint16) string {
	inodes := socketsOf("/proc/thread-self/net/"+network, port)
	if len(inodes) == 0 {
		return ""
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !inodes[target] {
			continue
		}
		pid := strings.Split(link, "/")[2]
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			continue
		}
		return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), pid)
	}
	return ""
}

// socketsOf reads a table of sockets (proc(5)) and returns those with the local
// port, in the form in which they stand in /proc/PID/fd.
func socketsOf(table string, port uint16) map[string]bool {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	out := map[string]bool{}
	suffix := fmt.Sprintf(":%04X", port)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], suffix) && fields[9] != "0" {
			out["socket:["+fields[9]+"]"] = true
		}
	}
	return out
}
