package netboot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/vm-test/qemu"
)

// installedMachine is what pxed says of a machine that was installed.
type installedMachine struct{ desk.Machine }

// checkLogin looks at the node from the inside: cloud-init ran with the node's own
// seed, and the node was recognised by the host keys that it reported.
func checkLogin(t *testing.T, s *server, v *qemu.VM) {
	t.Helper()
	shell, err := v.SSH(t.Context(), s.lab.profile.Access.Users[0].Name, read(t, keyPath), limit)
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Close()
	run := func(command string) string {
		out, err := shell.Run(t.Context(), command)
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(out)
	}
	if got := run("hostname"); got != nodeName {
		t.Errorf("the node calls itself %q", got)
	}
	var status struct {
		Status string              `json:"status"`
		Errors []string            `json:"errors"`
		Worse  map[string][]string `json:"recoverable_errors"`
		Source string              `json:"datasource"`
	}
	report := run("cloud-init status --format json")
	if err := json.Unmarshal([]byte(report), &status); err != nil || status.Status != "done" || len(status.Errors)+len(status.Worse) > 0 || status.Source != "nocloud" {
		t.Errorf("cloud-init: %v, %s", err, report)
	}
	seed := string(read(t, s.lab.images+"/seeds/"+nodeName+"/user-data"))
	if got := run("sudo cat /var/lib/cloud/seed/nocloud/user-data"); got != strings.TrimSpace(seed) {
		t.Errorf("the node's user-data is not that of the build")
	}
	if got := run("systemctl is-system-running"); got != "running" {
		t.Errorf("systemd calls the node %q: %s", got, run("systemctl list-units --failed --plain --no-legend"))
	}
	if got := run("cat /proc/cmdline"); !strings.Contains(got, "slipway.roothash="+s.lab.index.Slot.RootHash) {
		t.Errorf("another root hash than the build's: %s", got)
	}
	if got := run("sudo stat -c %a /run/slipway/home.json"); got != "600" {
		t.Errorf("the ticket of the node may be read by others: mode %s", got)
	}
	t.Logf("%s", run("systemd-analyze; sudo journalctl -u slipway-report -o cat | tail -2"))
}

// checkDisk reads the disk that a node leaves behind with programs that did not
// write it, and compares the slot with the build's.
func checkDisk(t *testing.T, l *lab, raw string) {
	t.Helper()
	if got := tool(t, "sgdisk", "-v", raw); !strings.Contains(got, "No problems found") {
		t.Errorf("sgdisk -v: %s", got)
	}
	p, ok := l.index.Disk.Partition(disklayout.NameSlotA)
	if !ok {
		t.Fatal("the build has no slot A")
	}
	var table struct {
		PartitionTable struct {
			ID         string `json:"id"`
			SectorSize int64  `json:"sectorsize"`
			Partitions []struct {
				Name  string `json:"name"`
				Start int64  `json:"start"`
			} `json:"partitions"`
		} `json:"partitiontable"`
	}
	if err := json.Unmarshal([]byte(tool(t, "sfdisk", "--json", raw)), &table); err != nil {
		t.Fatal(err)
	}
	if table.PartitionTable.ID == l.index.Disk.GUID {
		t.Error("the disk has the GUID of the image: two disks would be taken for one")
	}
	for _, q := range table.PartitionTable.Partitions {
		if q.Name != disklayout.NameSlotA {
			continue
		}
		want, got := sumOf(t, l.rawImage(t), p.Offset, p.Size), sumOf(t, raw, q.Start*table.PartitionTable.SectorSize, p.Size)
		if want != got {
			t.Errorf("slot A has the digest %s, the build %s", got, want)
		}
		t.Logf("slot A on the disk: sha256 %s, as built", got)
		return
	}
	t.Errorf("the disk has no slot A: %+v", table)
}

func eventsText(events []desk.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Text + "\n")
	}
	return b.String()
}
