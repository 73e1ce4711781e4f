package pxed

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
)

// CheckPrivileges refuses early, before a build is verified for seconds, what the
// kernel would refuse late: DHCP and TFTP live on ports below 1024.
func CheckPrivileges(program string) error {
	if mayBind(readFile("/proc/self/status"), readFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")) {
		return nil
	}
	return diag.WithHint(
		fmt.Errorf("no permission to open ports 67, 69 and 4011: this process has no CAP_NET_BIND_SERVICE"),
		"run as root, or once: setcap cap_net_bind_service,cap_net_raw+ep "+program)
}

// mayBind reads the capabilities of a process (proc(5), CapEff) and the first port
// that everybody may open (ip-sysctl).
func mayBind(status, firstFree string) bool {
	const lowest = 67
	if n, err := strconv.Atoi(strings.TrimSpace(firstFree)); err == nil && n <= lowest {
		return true
	}
	for line := range strings.Lines(status) {
		if text, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			return err == nil && caps&(1<<unix.CAP_NET_BIND_SERVICE) != 0
		}
	}
	return true // not known: the kernel will say
}

func readFile(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}
