package boot

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// checkBaseline compares the node with what the profile promises, without the
// product's own check in between, and then asks that one too.
func checkBaseline(t *testing.T, n *machine) {
	if got := strings.TrimSpace(n.run(t, "hostname; hostname -f | grep -o '^[^.]*'")); got != n.lab.node.Name+"\n"+n.lab.node.Name {
		t.Errorf("host name and first label of the full one: %q, want %s twice", got, n.lab.node.Name)
	}
	if got := strings.TrimSpace(n.run(t, "sudo -n id -un")); got != "root" {
		t.Errorf("sudo makes the user %q", got)
	}
	checkAddresses(t, n)
	checkModules(t, n)
	checkSysctls(t, n)
	if got := strings.TrimSpace(n.run(t, "systemctl is-active slipway-ready.target")); got != "active" {
		t.Errorf("slipway-ready.target is %s", got)
	}
	t.Log(n.run(t, "sudo slipway-node ready"))
	if got := n.try("cloud-init status --format json"); !cloudInitDone(t, got) {
		t.Errorf("cloud-init has something to say: %s\n%s", got, n.try("cloud-init status --long"))
	}
}

// cloudInitDone reads the report: done, and without a word of complaint.
func cloudInitDone(t *testing.T, report string) bool {
	t.Helper()
	var status struct {
		Status            string              `json:"status"`
		Extended          string              `json:"extended_status"`
		Errors            []string            `json:"errors"`
		RecoverableErrors map[string][]string `json:"recoverable_errors"`
	}
	if err := json.Unmarshal([]byte(report), &status); err != nil {
		t.Errorf("cloud-init status: %v", err)
		return false
	}
	return status.Status == "done" && status.Extended == "done" && len(status.Errors) == 0 && len(status.RecoverableErrors) == 0
}

func checkAddresses(t *testing.T, n *machine) {
	var links []struct {
		Name    string `json:"ifname"`
		MAC     string `json:"address"`
		Address []struct {
			Local netip.Addr `json:"local"`
			Bits  int        `json:"prefixlen"`
			Scope string     `json:"scope"`
		} `json:"addr_info"`
	}
	if err := json.Unmarshal([]byte(n.run(t, "ip -j address")), &links); err != nil {
		t.Fatal(err)
	}
	want := n.lab.address()
	for _, l := range links {
		if l.MAC != string(n.lab.node.Interfaces[0].MAC) {
			continue
		}
		for _, a := range l.Address {
			if a.Scope == "global" && netip.PrefixFrom(a.Local, a.Bits) == want {
				t.Logf("%s has %s", l.Name, want)
				return
			}
		}
	}
	t.Errorf("no interface has %s: %+v", want, links)
}

// checkModules looks for every module, loaded or built in. A built-in one
// without parameters shows only in the kernel's own list.
func checkModules(t *testing.T, n *machine) {
	out := n.run(t, fmt.Sprintf(`for m in %s; do
		n=$(echo $m | tr - _)
		[ -d /sys/module/$n ] || tr - _ </lib/modules/$(uname -r)/modules.builtin | grep -q "/$n.ko" || echo $m
	done`, strings.Join(n.lab.profile.System.Modules, " ")))
	if out != "" {
		t.Errorf("kernel modules that are neither loaded nor built in: %q", strings.Fields(out))
	}
}

func checkSysctls(t *testing.T, n *machine) {
	want := n.lab.profile.System.Sysctls
	keys := slices.Sorted(maps.Keys(want))
	got := strings.Split(strings.TrimSpace(n.run(t, "sudo sysctl -n "+strings.Join(keys, " "))), "\n")
	if len(got) != len(keys) {
		t.Fatalf("%d sysctls asked for, %d answers", len(keys), len(got))
	}
	for i, key := range keys {
		if strings.Join(strings.Fields(got[i]), " ") != want[key] {
			t.Errorf("%s is %s, want %s", key, got[i], want[key])
		}
	}
}
