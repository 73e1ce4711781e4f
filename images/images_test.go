package images

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/imagebuild/rootfs"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/payload/vip"
)

func TestLists(t *testing.T) {
	for _, substrate := range []string{"vm", "metal"} {
		packages, err := Packages(substrate)
		if err != nil || len(packages) < 20 {
			t.Errorf("packages of %s: %v, %v", substrate, packages, err)
		}
		modules, err := InitrdModules(substrate)
		if err != nil || len(modules) < 10 {
			t.Errorf("modules of %s: %v, %v", substrate, modules, err)
		}
		for _, list := range [][]string{packages, modules} {
			seen := map[string]bool{}
			for _, word := range list {
				if seen[word] {
					t.Errorf("%s lists %s twice", substrate, word)
				}
				seen[word] = true
			}
		}
		for _, m := range modules {
			if m == "virtio_net" || m == "e1000e" || m == "igc" || m == "r8169" {
				t.Errorf("the initramfs of %s has the network driver %s: netplan would wait on later boots", substrate, m)
			}
		}
	}
	if _, err := Packages("toaster"); err == nil {
		t.Error("there is an image for toasters")
	}
}

func TestOverlay(t *testing.T) {
	tree, err := Overlay()
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := tree.Lookup("etc/machine-id"); !ok || e.Mode.Perm() != 0o444 || len(e.Content) != 0 {
		t.Errorf("etc/machine-id must be there and empty: %+v", e)
	}
	if e, ok := tree.Lookup("efi"); !ok || !e.Mode.IsDir() {
		t.Errorf("there is no mount point /efi: %+v", e)
	}
	for e := range tree.All() {
		if e.Mode&fs.ModeSymlink == 0 || e.Target == "/dev/null" || !strings.HasPrefix(e.Target, "../slipway") {
			continue
		}
		// A link to one of our units must lead to one.
		if _, ok := tree.Lookup(path.Join(path.Dir(e.Path), e.Target)); !ok {
			t.Errorf("%s leads to %s, which is not there", e.Path, e.Target)
		}
	}
}

// TestUnits: what our units order and require must be units of ours or of systemd,
// and a unit that blesses a boot must stand before boot-complete.target.
func TestUnits(t *testing.T) {
	tree, err := Overlay()
	if err != nil {
		t.Fatal(err)
	}
	for e := range tree.All() {
		if !e.Mode.IsRegular() || !strings.HasPrefix(e.Path, "usr/lib/systemd/system/slipway-") {
			continue
		}
		text := string(e.Content)
		if !strings.Contains(text, "Description=Slipway: ") {
			t.Errorf("%s has no description", e.Path)
		}
		if !strings.Contains(text, "DefaultDependencies=no") {
			t.Errorf("%s has default dependencies: with cloud-final they make a circle", e.Path)
		}
	}
	health, _ := tree.Lookup("usr/lib/systemd/system/slipway-health.service")
	if !strings.Contains(string(health.Content), "Before=boot-complete.target") {
		t.Error("a boot is blessed before its baseline holds")
	}
	if _, ok := tree.Lookup("usr/lib/systemd/system/boot-complete.target.requires/slipway-health.service"); !ok {
		t.Error("boot-complete.target does not require the health of the node")
	}
}

// TestClusterUnits: what runs the cluster starts after the baseline, is passed over
// where bootstrap has written nothing, and is not stopped by a baseline that is
// checked again. A unit that nothing wants would be gone with the next boot: /etc is
// made anew.
func TestClusterUnits(t *testing.T) {
	tree, err := Overlay()
	if err != nil {
		t.Fatal(err)
	}
	for unit, lines := range map[string][]string{
		"k3s.service":        {"ConditionPathExists=" + k3sconf.ConfigPath, "ConditionPathExists=!" + k3sconf.AgentMark, "RequiresMountsFor=/var/lib/rancher /var/lib/kubelet /var/lib/longhorn"},
		"k3s-agent.service":  {"ConditionPathExists=" + k3sconf.ConfigPath, "ConditionPathExists=" + k3sconf.AgentMark, "RequiresMountsFor=/var/lib/rancher /var/lib/kubelet /var/lib/longhorn"},
		"keepalived.service": {"ConditionPathExists=" + vip.OnNode().Dir + "/" + vip.ConfigName},
	} {
		e, ok := tree.Lookup("usr/lib/systemd/system/" + unit)
		if _, wanted := tree.Lookup("usr/lib/systemd/system/slipway-ready.target.wants/" + unit); !ok || !wanted {
			t.Errorf("%s is there: %v, wanted: %v", unit, ok, wanted)
		}
		text := "\n" + string(e.Content)
		for _, line := range append(lines, "ConditionPathExists=/run/slipway/ready", "After=slipway-ready.target network-online.target", "Restart=always") {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("%s has no line %s", unit, line)
			}
		}
		for _, key := range []string{"Requires=", "BindsTo=", "PartOf=", "Requisite="} {
			if strings.Contains(text, "\n"+key) {
				t.Errorf("%s would be stopped by %s", unit, key)
			}
		}
	}
	if u := k3sconf.Unit(cluster.RoleServer) + " " + k3sconf.Unit(cluster.RoleAgent) + " " + vip.Unit; u != "k3s.service k3s-agent.service keepalived.service" {
		t.Errorf("bootstrap starts %s", u)
	}
	for _, script := range []string{"k3s-images", "keepalived-lan"} {
		if e, ok := tree.Lookup("usr/lib/slipway/" + script); !ok || e.Mode.Perm() != 0o755 {
			t.Errorf("%s cannot be run", script)
		}
	}
}

func TestDrop(t *testing.T) {
	patterns, err := Drop()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, p := range patterns {
		have[p] = true
		for _, part := range strings.Split(p, "/") {
			if _, err := path.Match(part, ""); err != nil {
				t.Errorf("pattern %s: %v", p, err)
			}
		}
	}
	dropper, err := rootfs.NewDropper(patterns)
	if err != nil {
		t.Fatal(err)
	}
	for _, needed := range []string{"etc/keepalived/keepalived.config-opts", "usr/lib/x86_64-linux-gnu/libperl.so.5.40", "usr/lib/x86_64-linux-gnu/perl-base/strict.pm"} {
		if dropper.Drop(needed) {
			t.Errorf("%s is left out: keepalived does not start without it, or packages do not install", needed)
		}
	}
	for _, p := range []string{"etc/machine-id", "etc/ssh/ssh_host_*", "etc/iscsi/initiatorname.iscsi",
		"var/lib/dbus/machine-id", "var/lib/systemd/random-seed"} {
		if !have[p] {
			t.Errorf("identity %s may come into the image", p)
		}
	}
}
