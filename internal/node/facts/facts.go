// Package facts collects what this node tells bootstrap about itself. What cannot be
// read is left empty; whoever asks judges what is missing.
package facts

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/baseline"
	told "github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// What k3s and bootstrap have on a node; the same as in payload/k3sconf, which would
// bring a YAML reader into the initramfs.
const (
	configPath = "/etc/rancher/k3s/config.yaml"
	dropInDir  = "/etc/rancher/k3s/config.yaml.d"
	agentMark  = "/etc/slipway/agent"
	dataDir    = "/var/lib/rancher/k3s"
)

// Source is where facts come from.
type Source struct {
	Root  string                                                        // the node's root, "/" but in tests
	Run   func(ctx context.Context, name string, args ...string) []byte // a program's output; nil when it fails
	Clock func() (now time.Time, synchronised bool)
}

// Here is this node.
func Here() Source { return Source{Root: "/", Run: run, Clock: clock} }

// runLimit bounds a program that is asked.
const runLimit = 10 * time.Second

func run(ctx context.Context, name string, args ...string) []byte {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return nil
	}
	return out
}

// maxError is the error from which the kernel's clock counts as not synchronised,
// microseconds: systemd-timedated draws the line here, too. The flag STA_UNSYNC says
// less: it also stands for "do not write the hardware clock".
const maxError = 16_000_000

func clock() (time.Time, bool) {
	var t unix.Timex
	_, err := unix.Adjtimex(&t)
	return time.Now(), err == nil && t.Maxerror < maxError
}

// Collect returns what can be read without help of others: the baseline, network
// cards and disks are added by the caller.
func Collect(ctx context.Context, s Source) told.Facts {
	f := told.Facts{
		Format: told.Format, Node: s.word("/proc/sys/kernel/hostname"),
		InstanceID: s.word("/run/cloud-init/.instance-id"), MachineID: s.word("/etc/machine-id"), BootID: s.word("/proc/sys/kernel/random/boot_id"),
		HostKeys: s.hostKeys(), Initiator: s.initiator(), Routes: s.routes(),
		Interfaces: []told.Interface{}, Missing: []told.Missing{}, Disks: []machine.Disk{}, Data: s.Data(), K3s: s.k3s(ctx),
	}
	var b baseline.Baseline
	if json.Unmarshal(s.file(baseline.Path), &b) == nil {
		f.Environment, f.Cluster = b.Environment, b.Cluster
	}
	f.Clock.LocalRTC = s.localRTC()
	f.Clock.Now, f.Clock.Synchronised = s.Clock()
	return f
}

func (s Source) path(name string) string { return filepath.Join(s.Root, name) }

func (s Source) file(name string) []byte {
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		return nil
	}
	return data
}

func (s Source) word(name string) string { return strings.TrimSpace(string(s.file(name))) }

func (s Source) exists(name string) bool {
	_, err := os.Stat(s.path(name))
	return err == nil
}

func (s Source) hostKeys() []string {
	paths, _ := filepath.Glob(s.path("/etc/ssh/ssh_host_*_key.pub"))
	out := []string{}
	for _, p := range paths {
		if data, err := os.ReadFile(p); err == nil {
			out = append(out, strings.TrimSpace(string(data)))
		}
	}
	return out
}

func (s Source) initiator() string {
	for line := range strings.Lines(string(s.file("/etc/iscsi/initiatorname.iscsi"))) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "InitiatorName="); ok {
			return name
		}
	}
	return ""
}

// localRTC reads the third line of adjtime (hwclock(8)); without the file it is UTC.
func (s Source) localRTC() bool {
	lines := strings.Split(string(s.file("/etc/adjtime")), "\n")
	return len(lines) > 2 && strings.TrimSpace(lines[2]) == "LOCAL"
}

// Data reads the data disks that the node has taken, and looks which are mounted.
func (s Source) Data() []told.Mount {
	var kept told.Data
	if json.Unmarshal(s.file(told.DataPath), &kept) != nil || kept.Mounts == nil {
		return []told.Mount{}
	}
	mounted := s.mountPoints()
	for i, m := range kept.Mounts {
		kept.Mounts[i].Mounted = mounted[m.Path]
	}
	return kept.Mounts
}

// mountPoints are the places where something is mounted (proc_pid_mountinfo(5)).
func (s Source) mountPoints() map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(string(s.file("/proc/self/mountinfo"))) {
		if f := strings.Fields(line); len(f) > 4 {
			out[f[4]] = true
		}
	}
	return out
}

func (s Source) k3s(ctx context.Context) told.K3s {
	k := told.K3s{
		Version: s.version(ctx), Config: s.exists(configPath), DropIns: s.dropIns(),
		Etcd: s.exists(dataDir + "/server/db/etcd/member"), SQLite: s.exists(dataDir + "/server/db/state.db"),
		Member:   s.word(dataDir + "/server/db/etcd/name"),
		Joined:   s.exists(dataDir + "/agent/client-kubelet.crt"),
		Password: s.exists("/etc/rancher/node/password"),
		Unit:     "k3s.service",
	}
	k.CA, k.TokenCA = s.ca()
	k.Init = told.ConfigInit(s.file(configPath))
	for _, name := range k.DropIns {
		k.Init = k.Init || told.ConfigInit(s.file(dropInDir+"/"+name))
	}
	if s.exists(agentMark) {
		k.Unit = "k3s-agent.service"
	}
	k.State = s.unit(ctx, k.Unit)
	return k
}

// ca is the cluster's CA by its certificate, and by the hash that tokens carry: that
// of the file as it is, as long as there is one certificate in it. Of a bundle, k3s
// takes the root, which takes more than reading to find.
func (s Source) ca() (digest.Digest, string) {
	data := s.file(dataDir + "/server/tls/server-ca.crt")
	block, rest := pem.Decode(data)
	if block == nil {
		return digest.Digest{}, ""
	}
	if more, _ := pem.Decode(rest); more != nil {
		return digest.Of(block.Bytes), ""
	}
	return digest.Of(block.Bytes), digest.Of(data).Hex()
}

// version is the second word of "k3s version v1.34.4+k3s1 (…)".
func (s Source) version(ctx context.Context) string {
	line, _, _ := bytes.Cut(s.Run(ctx, "k3s", "--version"), []byte("\n"))
	if f := strings.Fields(string(line)); len(f) > 2 {
		return f[2]
	}
	return ""
}

func (s Source) dropIns() []string {
	out := []string{}
	entries, _ := os.ReadDir(s.path(dropInDir))
	for _, e := range entries {
		if low := strings.ToLower(e.Name()); !e.IsDir() && (strings.HasSuffix(low, ".yaml") || strings.HasSuffix(low, ".yml")) {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out
}

func (s Source) unit(ctx context.Context, name string) string {
	state := strings.TrimSpace(string(s.Run(ctx, "systemctl", "show", "--property=ActiveState", "--value", name)))
	if state == "" {
		return "unknown"
	}
	return state
}
