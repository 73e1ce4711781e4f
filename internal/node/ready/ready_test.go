package ready

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/baseline"
)

const id = "0123456789abcdef0123456789abcdef"

// good is a node that holds its baseline.
func good() Observed {
	return Observed{
		Baseline: &baseline.Baseline{
			Format: baseline.Format, Node: "n1", Users: []string{"admin"}, Modules: []string{"br_netfilter"},
			Interfaces: []baseline.Interface{
				{MAC: "52:54:00:12:34:56", DHCP: true},
				{MAC: "52:54:00:12:34:57", VLAN: 30, Addresses: []string{"192.168.30.11/24"}},
			},
			Sysctls: map[string]string{"net.ipv4.ip_forward": "1", "net.ipv4.tcp_rmem": "4096 131072 6291456"},
			Units:   []string{"ssh.service"}, Commands: []string{"iptables"},
		},
		Hostname: "n1",
		Interfaces: []Interface{
			{Name: "enp1s0", MAC: "52:54:00:12:34:56", Up: true, Addresses: []string{"10.0.2.15/24"}, Global: true},
			{Name: "enp2s0", MAC: "52:54:00:12:34:57", Up: true},
			{Name: "nic1v30", MAC: "52:54:00:12:34:57", VLAN: 30, Up: true, Addresses: []string{"192.168.30.11/24"}, Global: true},
		},
		Users: map[string]bool{"admin": true}, Modules: map[string]bool{"br_netfilter": true},
		Sysctls: map[string]string{"net.ipv4.ip_forward": "1", "net.ipv4.tcp_rmem": "4096\t131072\t6291456"},
		Units:   map[string]string{"ssh.service": "active"}, Commands: map[string]bool{"iptables": true},
		MachineID: id, PersistedID: id, RootFS: "squashfs", RootRO: true,
		State:     State{OnVar: true, Size: 3900 << 20, PartitionSize: 4000 << 20},
		CloudInit: CloudInit{Finished: true, DataSource: "DataSourceNoCloud [seed=/var/lib/cloud/seed/nocloud]"},
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name string
		do   func(*Observed)
		want []string // "item: words", one for each missing thing
	}{
		{"ready", func(*Observed) {}, nil},
		{"cloud-init is running", func(o *Observed) { o.CloudInit.Finished = false }, []string{"cloud-init: has not finished"}},
		{"cloud-init failed", func(o *Observed) { o.CloudInit.Errors = []string{"('users_groups', boom)"} }, []string{"cloud-init: boom"}},
		{"warnings do not count", func(o *Observed) { o.CloudInit.Warnings = []string{"deprecated"} }, nil},
		{"no seed", func(o *Observed) { o.Baseline = nil; o.CloudInit.DataSource = "DataSourceNone" },
			[]string{"seed: found no seed", "baseline: brought no baseline"}},
		{"broken baseline", func(o *Observed) { o.Baseline, o.BaselineErr = nil, "invalid character" }, []string{"baseline: invalid character"}},
		{"baseline of another release", func(o *Observed) { o.Baseline.Format = "slipway-baseline/9" }, []string{"baseline: slipway-baseline/9"}},
		{"writable root", func(o *Observed) { o.RootFS, o.RootRO = "0xef53", false }, []string{"root: not the read-only slot"}},
		{"no identity", func(o *Observed) { o.MachineID, o.PersistedID = "", "" }, []string{"identity: not an identity"}},
		{"uninitialized identity", func(o *Observed) { o.MachineID = "uninitialized" }, []string{"identity: uninitialized"}},
		{"identity will not persist", func(o *Observed) { o.PersistedID = strings.Repeat("f", 32) }, []string{"identity: not persist"}},
		{"state in memory", func(o *Observed) { o.State = State{} }, []string{"state: /var does not lie"}},
		{"disk was enlarged", func(o *Observed) { o.State.FreeAfter = 1 << 30 }, []string{"state: 1024 MiB of the disk"}},
		{"file system was not grown", func(o *Observed) { o.State.PartitionSize = 9000 << 20 }, []string{"state: has 3900 MiB, its partition 9000"}},
		{"wrong host name", func(o *Observed) { o.Hostname = "localhost" }, []string{"host name: localhost"}},
		{"NIC missing", func(o *Observed) { o.Interfaces = o.Interfaces[1:] }, []string{"network: no interface 52:54:00:12:34:56"}},
		{"no NIC at all", func(o *Observed) { o.Interfaces = nil }, []string{"network: 12:34:56", "network: 12:34:57 VLAN 30"}},
		{"cable out", func(o *Observed) { o.Interfaces[0].Up = false }, []string{"network: enp1s0) has no link"}},
		{"no lease", func(o *Observed) { o.Interfaces[0].Global = false }, []string{"network: no address from DHCP"}},
		{"static address missing", func(o *Observed) { o.Interfaces[2].Addresses = []string{"192.168.30.11/16"} }, []string{"network: 192.168.30.11/24"}},
		{"VLAN missing", func(o *Observed) { o.Interfaces = o.Interfaces[:2] }, []string{"network: VLAN 30"}},
		{"letter case of a MAC", func(o *Observed) {
			o.Interfaces[2].MAC, o.Baseline.Interfaces[1].MAC = "52:54:00:AB:34:57", "52:54:00:ab:34:57"
		}, nil},
		{"user missing", func(o *Observed) { o.Users = nil }, []string{"user: admin"}},
		{"module missing", func(o *Observed) { o.Modules = nil }, []string{"module: br_netfilter"}},
		{"unit failed", func(o *Observed) { o.Units["ssh.service"] = "failed" }, []string{"unit: ssh.service is failed"}},
		{"systemd did not answer", func(o *Observed) { o.Units = nil }, []string{"unit: ssh.service is unknown"}},
		{"command missing", func(o *Observed) { o.Commands = nil }, []string{"command: iptables"}},
		{"sysctl differs", func(o *Observed) { o.Sysctls["net.ipv4.ip_forward"] = "0" }, []string{"sysctl: is 0, it must be 1"}},
		{"sysctl is absent", func(o *Observed) { delete(o.Sysctls, "net.ipv4.ip_forward") }, []string{"sysctl: no setting net.ipv4.ip_forward"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := good()
			o.Units, o.Sysctls = maps.Clone(o.Units), maps.Clone(o.Sysctls)
			tt.do(&o)
			got := Check(o)
			if len(got) != len(tt.want) {
				t.Fatalf("missing %+v, want %q", got, tt.want)
			}
			for i, m := range got {
				item, words, _ := strings.Cut(tt.want[i], ": ")
				if m.Item != item || !strings.Contains(m.What, words) {
					t.Errorf("got %s: %s, want %q", m.Item, m.What, tt.want[i])
				}
				if m.Hint == "" || strings.Contains(m.What+m.Hint, "%!") {
					t.Errorf("%+v does not say what to do", m)
				}
			}
		})
	}
}

func TestText(t *testing.T) {
	if got := Text(nil); !strings.HasPrefix(got, "ready for k3s") {
		t.Errorf("got %q", got)
	}
	got := Text([]Missing{{"user", "there is no user admin", "see the log"}})
	if got != "not ready for k3s, 1 missing:\n  user: there is no user admin\n    hint: see the log\n" {
		t.Errorf("got %q", got)
	}
}

// As cloud-init 25.1 writes them.
const runningStatus = `{"v1": {"datasource": null, "init": {"errors": [], "finished": null, "recoverable_errors": {}, "start": 12.3},
 "init-local": {"errors": [], "finished": 10.1, "recoverable_errors": {}, "start": 9.8}, "stage": "init"}}`

const failedStatus = `{"v1": {"datasource": "DataSourceNoCloud [seed=/dev/vda4]",
 "init": {"errors": ["('ssh', KeyError('x'))"], "finished": 12.5, "recoverable_errors": {"WARNING": ["Running module ssh failed"]}, "start": 12.3},
 "init-local": {"errors": [], "finished": 10.1, "recoverable_errors": {}, "start": 9.8},
 "modules-config": {"errors": [], "finished": 13, "recoverable_errors": {"DEPRECATED": ["old key"]}, "start": 12.9},
 "modules-final": {"errors": [], "finished": 14, "recoverable_errors": {}, "start": 13.9}, "stage": null}}`

func TestCloudInit(t *testing.T) {
	dir := t.TempDir()
	if c := cloudInit(dir); c.Finished || len(c.Errors) > 0 {
		t.Errorf("before cloud-init began: %+v", c)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("status.json", runningStatus)
	if c := cloudInit(dir); c.Finished || c.DataSource != "" || len(c.Errors) > 0 {
		t.Errorf("while it runs: %+v", c)
	}
	write("status.json", failedStatus)
	write("result.json", "{}")
	c := cloudInit(dir)
	if !c.Finished || !strings.Contains(c.DataSource, "NoCloud") || len(c.Errors) != 1 || len(c.Warnings) != 2 {
		t.Errorf("after a failure: %+v", c)
	}
	write("status.json", "{")
	if c := cloudInit(dir); len(c.Errors) != 1 {
		t.Errorf("unreadable: %+v", c)
	}
}

func TestReadBaseline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	if b, err := readBaseline(path); b != nil || err != "" {
		t.Errorf("absent: %v, %q", b, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := readBaseline(path); b != nil || err == "" {
		t.Errorf("broken: %v, %q", b, err)
	}
}

func TestSysctlNames(t *testing.T) {
	have := sysctls(map[string]string{"kernel.ostype": "", "kernel/ostype": "", "kernel.no_such_thing": ""})
	if have["kernel.ostype"] != "Linux" || have["kernel/ostype"] != "Linux" || have["kernel.no_such_thing"] != "" {
		t.Errorf("got %v", have)
	}
}
