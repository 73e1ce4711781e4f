package seed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/slipway/slipway/internal/baseline"
	"github.com/slipway/slipway/internal/cluster"
)

// cloudConfig is the part of #cloud-config that Slipway uses.
type cloudConfig struct {
	Hostname       string     `yaml:"hostname"`
	FQDN           string     `yaml:"fqdn,omitempty"`
	PreferFQDN     bool       `yaml:"prefer_fqdn_over_hostname"` // k3s names the node by the host name
	ManageEtcHosts bool       `yaml:"manage_etc_hosts"`
	Timezone       string     `yaml:"timezone,omitempty"`
	Locale         string     `yaml:"locale"` // "false": written below, never generated
	Users          []user     `yaml:"users"`
	DisableRoot    bool       `yaml:"disable_root"`
	SSHPasswords   bool       `yaml:"ssh_pwauth"`
	SSHDeleteKeys  bool       `yaml:"ssh_deletekeys"` // host keys persist; every boot is a new instance
	SSHKeyTypes    []string   `yaml:"ssh_genkeytypes"`
	SSH            sshOutput  `yaml:"ssh"`
	NoFingerprints bool       `yaml:"no_ssh_fingerprints"`
	GrowPart       growPart   `yaml:"growpart"`
	ResizeRoot     bool       `yaml:"resize_rootfs"`
	BootCommands   [][]string `yaml:"bootcmd,omitempty"`
	Files          []file     `yaml:"write_files"`
	Commands       []any      `yaml:"runcmd,omitempty"`
}

type user struct {
	Name       string   `yaml:"name"`
	UID        int      `yaml:"uid"`
	Shell      string   `yaml:"shell"`
	LockPasswd bool     `yaml:"lock_passwd"`
	Sudo       string   `yaml:"sudo,omitempty"`
	Keys       []string `yaml:"ssh_authorized_keys,omitempty"`
}

type sshOutput struct {
	KeysToConsole bool `yaml:"emit_keys_to_console"`
}

type growPart struct {
	Mode string `yaml:"mode"`
}

type file struct {
	Path        string `yaml:"path"`
	Permissions string `yaml:"permissions"`
	Content     string `yaml:"content"`
}

func userData(c cluster.Cluster, node cluster.Node) (cloudConfig, error) {
	files, err := files(c, node)
	if err != nil {
		return cloudConfig{}, err
	}
	d := cloudConfig{
		Hostname:       node.Name,
		ManageEtcHosts: true,
		Locale:         "false",
		Users:          users(c.Access.Users),
		DisableRoot:    true,
		SSHKeyTypes:    []string{"ed25519"},
		NoFingerprints: true,
		GrowPart:       growPart{Mode: "off"},
		BootCommands:   bootCommands(c.Access.Users),
		Files:          files,
		Commands:       commands(c),
	}
	if c.Network.DNSZone != "" {
		d.FQDN = node.Name + "." + c.Network.DNSZone
	}
	if c.Time.Zone != "UTC" { // what the image has
		d.Timezone = c.Time.Zone
	}
	return d, nil
}

// users makes the accounts. Debian's default user is not among them.
func users(wanted []cluster.User) []user {
	ids := userIDs(wanted)
	out := make([]user, 0, len(wanted))
	for _, u := range wanted {
		account := user{Name: u.Name, UID: ids[u.Name], Shell: "/bin/bash", LockPasswd: true, Keys: u.Keys}
		if u.Sudo {
			account.Sudo = "ALL=(ALL) NOPASSWD:ALL"
		}
		out = append(out, account)
	}
	return out
}

// userIDs gives every account a number that follows from its name. /etc/passwd is
// made anew at each boot while /home persists: numbers in the order of the profile
// would hand one user's files to another when a line moves. The range 2000-51999
// lies between Debian's first dynamic users and its systemd ranges.
func userIDs(wanted []cluster.User) map[string]int {
	const first, count = 2000, 50000
	sorted := slices.SortedFunc(slices.Values(wanted), func(a, b cluster.User) int { return cmp.Compare(a.Name, b.Name) })
	ids := map[string]int{}
	taken := map[uint32]bool{}
	for _, u := range sorted {
		h := fnv.New32a()
		h.Write([]byte(u.Name))
		n := h.Sum32() % count
		for taken[n] {
			n = (n + 1) % count
		}
		taken[n] = true
		ids[u.Name] = first + int(n)
	}
	return ids
}

// bootCommands run before accounts are made. cloud-init adds keys to those that a
// file in the persistent home holds already, so that a key taken out of the
// profile would stay valid for ever; the file must start out absent.
func bootCommands(wanted []cluster.User) [][]string {
	rm := []string{"rm", "-f", "/root/.ssh/authorized_keys"}
	for _, u := range wanted {
		rm = append(rm, "/home/"+u.Name+"/.ssh/authorized_keys")
	}
	return [][]string{rm}
}

// commands apply what write_files wrote after its readers had started. One
// systemctl keeps the order of the units (modules before sysctls, which they
// bring) and is one failure that cloud-init and the operator see.
func commands(c cluster.Cluster) []any {
	restart := []string{"systemctl", "restart", "systemd-journald.service"}
	if len(c.System.Modules) > 0 {
		restart = append(restart, "systemd-modules-load.service")
	}
	if len(c.System.Sysctls) > 0 {
		restart = append(restart, "systemd-sysctl.service")
	}
	if len(c.Time.Servers) > 0 {
		restart = append(restart, "systemd-timesyncd.service")
	}
	return []any{restart}
}

// baselineFile is what the node checks before it calls itself ready for k3s.
func baselineFile(c cluster.Cluster, node cluster.Node) (file, error) {
	b := baseline.Baseline{
		Format: baseline.Format, Environment: c.Environment, Cluster: c.Name, Node: node.Name,
		Modules: c.System.Modules, Sysctls: c.System.Sysctls,
		Units:    []string{"ssh.service", "systemd-networkd.service", "systemd-timesyncd.service"},
		Commands: []string{"iptables", "ipset", "conntrack", "mkfs.ext4"},
	}
	if c.Longhorn.Enabled {
		b.Units = append(b.Units, "iscsid.socket")
		b.Commands = append(b.Commands, "iscsiadm", "mount.nfs")
	}
	for _, u := range c.Access.Users {
		b.Users = append(b.Users, u.Name)
	}
	for _, i := range node.Interfaces {
		w := baseline.Interface{MAC: string(i.MAC), DHCP: i.DHCP, VLAN: i.VLAN}
		for _, a := range i.Addresses {
			w.Addresses = append(w.Addresses, a.String())
		}
		b.Interfaces = append(b.Interfaces, w)
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return file{}, fmt.Errorf("encoding the baseline: %w", err)
	}
	return readable(baseline.Path, string(text)+"\n"), nil
}
