package rule

import (
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// packages refuses what works against the rest of a node.
func packages(c *cluster.Cluster, report Report) {
	reasons := map[string]string{
		"multipath-tools": "multipathd takes Longhorn's volumes away", "multipath-tools-boot": "multipathd takes Longhorn's volumes away",
		"unattended-upgrades": "a slot is read-only; nodes are updated by a new image", "needrestart": "a slot is read-only; nodes are updated by a new image",
		"network-manager": "the network is netplan's, from the seed", "ifupdown": "the network is netplan's, from the seed",
		"ufw": "Cilium owns the packet filter", "firewalld": "Cilium owns the packet filter",
		"docker.io": "k3s brings its own containerd", "containerd": "k3s brings its own containerd",
		"grub-pc": "the boot loader is systemd-boot", "grub-efi-amd64": "the boot loader is systemd-boot",
		"dracut": "the initramfs is Slipway's", "initramfs-tools": "the initramfs is Slipway's",
	}
	for i, p := range c.System.Packages {
		path := fmt.Sprintf("system.packages[%d]", i)
		if reason, ok := reasons[p]; ok {
			report(path, p+" does not go on a node", reason)
		} else if strings.HasPrefix(p, "linux-image-") {
			report(path, p+" is a kernel", "substrate chooses the kernel")
		}
	}
}

// sysctls refuses parameters that another layer sets, and values that stop the cluster.
func sysctls(c *cluster.Cluster, report Report) {
	for key, value := range c.System.Sysctls {
		path := `system.sysctls["` + key + `"]`
		switch {
		case key == "kernel.hostname" || key == "kernel.domainname":
			report(path, key+" is set by cloud-init", "the name of a node is nodes[].name")
		case key == "kernel.modules_disabled" && value != "0":
			report(path, "no module could be loaded any more", "Cilium, Longhorn and KubeVirt load modules when they start")
		case forwarding(key) && value != "1":
			report(path, "a node that does not forward packets", "pods are reached through their node; write 1")
		case strings.HasSuffix(key, ".rp_filter") && value == "1":
			report(path, "strict reverse path filtering drops the packets of pods", "write 0 or 2; Cilium checks sources itself")
		}
	}
}

func forwarding(key string) bool {
	return key == "net.ipv4.ip_forward" || key == "net.ipv4.conf.all.forwarding"
}

// owned words of the kernel command line, and where what they do is said.
func ownedWords() map[string]string {
	const boot = "the boot entries set it"
	return map[string]string{
		"root": boot, "rootfstype": boot, "rootflags": boot, "rootwait": boot, "rootdelay": boot, "init": boot, "rdinit": boot,
		"initrd": boot, "ro": boot, "rw": boot, "BOOT_IMAGE": boot,
		"panic":   "a boot that fails must count and try again; the time is system.rebootAfter",
		"console": "write it to system.consoles",
		"ds":      "the seed is on the disk", "cloud-init": "a node without cloud-init has no identity",
		"ip": "the network is netplan's, from nodes[].interfaces", "nameserver": "name servers are network.dns",
		"systemd.unit": "a node starts the default target", "systemd.machine_id": "each node makes its own",
		"systemd.volatile": "what persists is decided by the image", "systemd.hostname": "the name of a node is nodes[].name",
		"single": "system.rescueShell is for repairs", "rescue": "system.rescueShell is for repairs",
		"emergency": "system.rescueShell is for repairs", "-": "words for init are not passed on", "--": "words for init are not passed on",
		"systemd.unified_cgroup_hierarchy": "Kubernetes needs cgroup v2",
	}
}

// commandLine refuses words that Slipway writes itself: the kernel takes the
// last of two, and which one is last is not for a profile to know.
func commandLine(c *cluster.Cluster, report Report) {
	for i, word := range c.System.CommandLine {
		path := fmt.Sprintf("system.commandLine[%d]", i)
		key, _, _ := strings.Cut(word, "=")
		switch reason, owned := ownedWords()[key]; {
		case owned:
			report(path, key+" on the kernel command line is Slipway's", reason)
		case key == "slipway" || strings.HasPrefix(key, "slipway."):
			report(path, "words that start with slipway are Slipway's", "remove it")
		case strings.HasPrefix(key, "sysctl."):
			report(path, "a kernel parameter on the command line", "write it to system.sysctls")
		}
	}
}

// The bounds of what a node does when it cannot boot, in seconds: a person must
// be able to read the screen, and a flaky power supply must not need a visit.
const (
	minReboot = 10
	maxReboot = 3600
)

// minJournal is the least journald works well with.
const minJournal = cluster.Size(16 << 20)

func systemBounds(c *cluster.Cluster, report Report) {
	s := &c.System
	if s.RebootAfter != 0 && (s.RebootAfter < minReboot || s.RebootAfter > maxReboot) {
		report("system.rebootAfter", fmt.Sprintf("%d seconds", s.RebootAfter), fmt.Sprintf("it goes from %d to %d, or is 0 for never", minReboot, maxReboot))
	}
	if s.JournalMax != 0 && s.JournalMax < minJournal {
		report("system.journalMax", "a journal of "+s.JournalMax.String(), "write a size of at least "+minJournal.String())
	}
}
