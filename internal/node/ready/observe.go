package ready

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/baseline"
	"github.com/slipway/slipway/internal/node/record"
)

// stateMount is where nodeinit mounts the state file system.
const stateMount = "/run/slipway/state"

// Observe looks at the running node. What cannot be seen stays empty and so shows
// as missing.
func Observe(ctx context.Context) Observed {
	var o Observed
	o.Baseline, o.BaselineErr = readBaseline(baseline.Path)
	o.Hostname, _ = os.Hostname()
	o.Interfaces = interfaces()
	o.MachineID = word("/etc/machine-id")
	o.PersistedID = word(filepath.Join(stateMount, "etc/machine-id"))
	o.RootFS, o.RootRO = rootMount()
	o.State = stateOf()
	o.CloudInit = cloudInit("/run/cloud-init")
	if o.Baseline == nil {
		return o
	}
	o.Users, o.Commands, o.Modules = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, name := range o.Baseline.Users {
		_, err := user.Lookup(name)
		o.Users[name] = err == nil
	}
	for _, name := range o.Baseline.Commands {
		o.Commands[name] = installed(name)
	}
	builtin := builtinModules()
	for _, name := range o.Baseline.Modules {
		o.Modules[name] = exists("/sys/module/"+canonical(name)) || builtin[canonical(name)]
	}
	o.Sysctls = sysctls(o.Baseline.Sysctls)
	o.Units = units(ctx, o.Baseline.Units)
	return o
}

func readBaseline(path string) (*baseline.Baseline, string) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ""
	}
	var b baseline.Baseline
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil {
		return nil, err.Error()
	}
	return &b, ""
}

func interfaces() []Interface {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	vlans := vlanIDs()
	var out []Interface
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 || i.HardwareAddr == nil {
			continue
		}
		// Bridges and the like borrow a NIC's address; they are not the NIC.
		if vlans[i.Name] == 0 && !exists(filepath.Join("/sys/class/net", i.Name, "device")) {
			continue
		}
		h := Interface{Name: i.Name, MAC: i.HardwareAddr.String(), VLAN: vlans[i.Name], Up: i.Flags&net.FlagRunning != 0}
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			h.Addresses = append(h.Addresses, a.String())
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				h.Global = true
			}
		}
		out = append(out, h)
	}
	return out
}

// vlanIDs reads /proc/net/vlan/config, lines such as "nic0v30 | 30 | nic0".
func vlanIDs() map[string]int {
	ids := map[string]int{}
	data, err := os.ReadFile("/proc/net/vlan/config")
	if err != nil {
		return ids
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(line, "|")
		if len(fields) != 3 {
			continue
		}
		if id, err := strconv.Atoi(strings.TrimSpace(fields[1])); err == nil {
			ids[strings.TrimSpace(fields[0])] = id
		}
	}
	return ids
}

func rootMount() (string, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs("/", &st); err != nil {
		return "", false
	}
	kind := fmt.Sprintf("0x%x", st.Type)
	if st.Type == unix.SQUASHFS_MAGIC {
		kind = "squashfs"
	}
	return kind, st.Flags&unix.ST_RDONLY != 0
}

func stateOf() State {
	var onVar, onState unix.Stat_t
	var size unix.Statfs_t
	if unix.Stat("/var", &onVar) != nil || unix.Stat(stateMount, &onState) != nil || unix.Statfs(stateMount, &size) != nil {
		return State{}
	}
	s := State{OnVar: onVar.Dev == onState.Dev && size.Type == unix.EXT4_SUPER_MAGIC, Size: int64(size.Blocks) * size.Bsize}
	boot, err := record.Read(record.Path)
	if err != nil {
		return s
	}
	s.PartitionSize, s.FreeAfter = partition(filepath.Base(boot.Disk), filepath.Base(boot.State))
	return s
}

// partition returns the size of a partition and the room between its end and the
// next partition or the end of the disk, in bytes.
func partition(disk, name string) (size, free int64) {
	const unit = 512 // of sysfs
	dir := filepath.Join("/sys/block", disk)
	start := number(filepath.Join(dir, name, "start"))
	size = number(filepath.Join(dir, name, "size"))
	end, next := start+size, number(filepath.Join(dir, "size"))
	others, _ := filepath.Glob(filepath.Join(dir, "*", "start"))
	for _, o := range others {
		if at := number(o); at >= end && at < next {
			next = at
		}
	}
	return size * unit, max(0, next-end) * unit
}

func builtinModules() map[string]bool {
	names := map[string]bool{}
	var uts unix.Utsname
	if unix.Uname(&uts) != nil {
		return names
	}
	data, err := os.ReadFile(filepath.Join("/lib/modules", unix.ByteSliceToString(uts.Release[:]), "modules.builtin"))
	if err != nil {
		return names
	}
	for line := range strings.Lines(string(data)) {
		names[canonical(strings.TrimSuffix(filepath.Base(strings.TrimSpace(line)), ".ko"))] = true
	}
	return names
}

func sysctls(wanted map[string]string) map[string]string {
	have := map[string]string{}
	for key := range wanted {
		// As in sysctl(8): where the first separator is a slash, dots belong to names (nic0.30).
		path := strings.ReplaceAll(key, ".", "/")
		if dot, slash := strings.IndexByte(key, '.'), strings.IndexByte(key, '/'); slash >= 0 && (dot < 0 || slash < dot) {
			path = key
		}
		have[key] = word(filepath.Join("/proc/sys", path))
	}
	return have
}

// units asks systemd for the state of units.
func units(ctx context.Context, names []string) map[string]string {
	states := map[string]string{}
	if len(names) == 0 {
		return states
	}
	// is-active prints one line a unit, in order, and fails when one is not active.
	args := append([]string{"is-active", "--"}, names...)
	out, _ := exec.CommandContext(ctx, "/usr/bin/systemctl", args...).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, name := range names {
		if i < len(lines) {
			states[name] = lines[i]
		}
	}
	return states
}

func installed(name string) bool {
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/opt/bin"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

func word(path string) string {
	data, _ := os.ReadFile(path)
	return strings.TrimSpace(string(data))
}

func number(path string) int64 {
	n, _ := strconv.ParseInt(word(path), 10, 64)
	return n
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func canonical(module string) string { return strings.ReplaceAll(module, "-", "_") }
