package install_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// refusals are what must stop an install before a disk is even opened.
func refusals() map[string]struct {
	change func(r *rig)
	says   string
} {
	type c = struct {
		change func(r *rig)
		says   string
	}
	return map[string]c{
		"unknown ticket":                  {func(r *rig) { r.status(http.StatusForbidden, machine.PathTicket, 1000) }, "403"},
		"used ticket":                     {func(r *rig) { r.status(http.StatusConflict, machine.PathTicket, 1000) }, "409"},
		"expired ticket, says the server": {func(r *rig) { r.status(http.StatusGone, machine.PathTicket, 1000) }, "410"},
		"expired ticket, says the clock":  {func(r *rig) { r.server.Ticket.Expires = time.Now().Add(-time.Minute) }, "expired at"},
		"seed handed out already":         {func(r *rig) { r.status(http.StatusGone, machine.PathSeed, 1000) }, "410"},
		"ticket of another version":       {func(r *rig) { r.server.Ticket.Format = "slipway-ticket/2" }, "slipway-ticket/2"},
		"ticket without key":              {func(r *rig) { r.server.Ticket.Key = "" }, "key"},
		"ticket without index":            {func(r *rig) { r.server.Ticket.Index = digest.Digest{} }, "index"},
		"ticket for no node":              {func(r *rig) { r.server.Ticket.Node = "" }, "node"},
		"another key":                     {func(r *rig) { r.server.Ticket.Key = anotherKey }, "signed by another key"},
		"no key at all":                   {func(r *rig) { r.server.Ticket.Key = "ssh-rsa AAAA" }, "key"},
		"another index":                   {func(r *rig) { r.server.Ticket.Index = digest.Of([]byte("x")) }, "not the image that the ticket is for"},
		"index changed in place":          {func(r *rig) { r.changed(artifact.IndexName, true) }, "not the image"},
		"index signed by nobody":          {func(r *rig) { r.changed(artifact.SignatureName, false) }, "signature"},
		"first chunk damaged":             {func(r *rig) { r.changed("disk.raw.zst", false) }, "digest mismatch"},
		"no matching disk":                {func(r *rig) { r.report.Disks[0].Serial = "OTHER" }, "no disk is the system disk"},
		"two matching disks": {func(r *rig) {
			r.report.Disks = append(r.report.Disks, r.report.Disks[0])
			r.report.Disks[1].Name = "vdb"
		}, "2 disks could be"},
		"disk too small":          {func(r *rig) { r.report.Disks[0].Size = 500 << 20 }, "the image and the state need"},
		"sectors of 4096 bytes":   {func(r *rig) { r.report.Disks[0].Sector = 4096 }, "its logical sectors have 4096 bytes"},
		"machine started by BIOS": {func(r *rig) { r.report.Firmware.Mode = "bios" }, "switch the firmware to UEFI"},
		"read-only disk":          {func(r *rig) { r.report.Disks[0].ReadOnly = true }, "read-only"},
		"mounted disk":            {func(r *rig) { r.report.Disks[0].Busy = "/mnt" }, "/mnt"},
		"boot medium":             {func(r *rig) { r.report.Disks[0].Boot = true }, "started from it"},
		"USB disk":                {func(r *rig) { r.report.Disks[0].Transport = "usb" }, "USB"},
		"foreign data":            {func(r *rig) { r.report.Disks[0].Content = []machine.Signature{{Type: "ntfs", Label: "Windows"}} }, "foreign data"},
		"data disk with foreign data": {func(r *rig) {
			r.dataDisk("vdb", "DATA")
			r.report.Disks[1].Content = []machine.Signature{{Type: "zfs_member"}}
			r.server.Ticket.Data = []machine.DataOrder{{Name: "d", Disk: cluster.Selector{Serial: "DATA"}, Policy: cluster.PolicyWipe}}
		}, "foreign data"},
		"seed without meta-data": {func(r *rig) { delete(r.server.Seed, "meta-data") }, "meta-data"},
		"seed that is too large": {func(r *rig) { r.server.Seed["user-data"] = strings.Repeat("x", 17<<20) }, ""},
		"seed with a path":       {func(r *rig) { r.server.Seed["../../etc/passwd"] = "x" }, "not a clean relative path"},
	}
}

const anotherKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINXJ6qihKWyirusEsvJI0z7l01boftJK2lgdomTqwJyY"

func TestRefusals(t *testing.T) {
	for name, tt := range refusals() {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			tt.change(r)
			result := r.run()
			if result.Err == nil {
				t.Fatal("installed")
			}
			for _, reason := range result.Receipt.Reasons {
				if n := strings.Count(strings.Join(result.Summary(), "\n"), reason); n != 1 {
					t.Errorf("said %d times: %s\n%s", n, reason, strings.Join(result.Summary(), "\n"))
				}
			}
			if said := strings.Join(append(result.Summary(), result.Err.Error()), "\n"); !strings.Contains(said, tt.says) || !strings.Contains(said, "nothing was written") {
				t.Errorf("says %q, want %q", said, tt.says)
			}
			r.untouched(result)
			if got := r.server.Receipts(); result.Acknowledged && (len(got) != 1 || got[0].Error == "" || got[0].Written) {
				t.Errorf("receipts %+v", got)
			}
		})
	}
}

// changed serves the build with one byte of a file changed.
func (r *rig) changed(name string, space bool) {
	dir := r.t.TempDir()
	data, err := os.ReadFile(filepath.Join(r.server.Dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	if space {
		data = append(data, '\n')
	} else {
		data[150] ^= 1
	}
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		r.t.Fatal(err)
	}
	original := r.server.Dir
	r.server.Fault = func(_ http.ResponseWriter, q *http.Request) bool {
		r.server.Dir = original
		if q.URL.Path == machine.PathArtifacts+name {
			r.server.Dir = dir
		}
		return false
	}
}
