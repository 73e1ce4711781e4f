package httpd

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
)

// A machine of no node is looked at once, and boots its disk ever after.
func TestStranger(t *testing.T) {
	l := newLab(t)
	s := l.boot(desktest.Stranger, "x-1")
	if !strings.Contains(s, "slipway.mode=inventory") || ticketIn(s) != "" || !strings.Contains(s, "slipway.mac="+desktest.Stranger) {
		t.Fatalf("%s", s)
	}
	reply := want[machine.Reply](l, "POST", machine.PathReport, "", desktest.Report(desktest.Stranger, "x-1"))
	if reply.Action != machine.ActionPowerOff || !strings.Contains(reply.Message, "nothing was written") {
		t.Errorf("%+v", reply)
	}
	if s := l.boot(desktest.Stranger, "x-1"); strings.Contains(s, "kernel") {
		t.Errorf("looked at again:\n%s", s)
	}
	m := want[desk.Machine](l, "GET", "/api/v1/machines/"+desktest.Stranger, operatorToken, nil)
	if m.Node != "" || m.Report == nil || m.Hint == "" || !strings.Contains(m.Why, desktest.Stranger) {
		t.Errorf("%+v", m)
	}
}

func TestStrangerIsLeftAloneWithoutDiscovery(t *testing.T) {
	l := newLab(t, func(d *desk.Options, _ *Options) { d.Discover = false })
	if s := l.boot(desktest.Stranger, "x-1"); strings.Contains(s, "kernel") || !strings.HasSuffix(s, "exit 1\n") {
		t.Errorf("%s", s)
	}
}

// Two machines with the same address are both refused, and everybody can see why.
func TestTwins(t *testing.T) {
	l := newLab(t)
	l.arm("n1", desk.Order{})
	token := ticketIn(l.boot(desktest.MAC1, "sn-1"))
	if token == "" {
		t.Fatal("the armed machine got no installer")
	}
	s := l.boot(desktest.MAC1, "sn-2")
	if ticketIn(s) != "" || !strings.Contains(s, desktest.MAC1) {
		t.Errorf("the second machine with the address got\n%s", s)
	}
	if s := l.boot(desktest.MAC1, "sn-1"); ticketIn(s) != "" {
		t.Errorf("the first one got\n%s", s)
	}
	reply := want[machine.Reply](l, "POST", machine.PathReport, token, desktest.Report(desktest.MAC1, "sn-2"))
	if reply.Action != machine.ActionBootDisk || !strings.Contains(reply.Message, "two machines have the MAC address") {
		t.Errorf("the second machine with the first one's ticket is told %+v", reply)
	}
	l.inEvents("conflict", desktest.MAC1)
	if !strings.Contains(l.log.String(), "two machines") {
		t.Errorf("not in the log: %s", l.log)
	}
}

// Whatever is wrong with a request or with pxed, the answer is a script that
// boots the disk.
func TestBootNeverFails(t *testing.T) {
	l := newLab(t)
	l.arm("n1", desk.Order{})
	for _, query := range []string{"", "?mac=", "?mac=nonsense", "?mac=ff:ff:ff:ff:ff:ff", "?mac=${netX/mac}", "?mac=" + strings.Repeat("a", 5000), "?%zz", "?mac=%00"} {
		status, s := l.do("GET", machine.PathBoot+query, "", nil)
		if status != http.StatusOK || !strings.HasPrefix(s, "#!ipxe\n") || !strings.HasSuffix(s, "exit 1\n") || strings.Contains(s, "kernel ") {
			t.Errorf("%.40s: %d\n%s", query, status, s)
		}
	}
	l.ledger.Down(errors.New("no majority"))
	s := l.boot(desktest.MAC1, "sn-1")
	if ticketIn(s) != "" || !strings.HasSuffix(s, "exit 1\n") || !strings.Contains(s, "no majority") {
		t.Errorf("without a ledger:\n%s", s)
	}
	if status, _ := l.do("GET", "/healthz", "", nil); status != http.StatusServiceUnavailable {
		t.Errorf("healthy without a ledger: %d", status)
	}
}

func TestDesignOnlyProfileArmsNothing(t *testing.T) {
	l := newLab(t, func(d *desk.Options, _ *Options) { d.Cluster.Status = cluster.StatusDesignOnly })
	l.refused(http.StatusForbidden, "design", "design-only", "POST", "/api/v1/nodes/n1/arm", operatorToken, desk.Order{})
	if s := l.boot(desktest.MAC1, "sn-1"); ticketIn(s) != "" {
		t.Errorf("%s", s)
	}
}

// A machine that was armed for one image is not given another.
func TestArmedForAnotherImage(t *testing.T) {
	l := newLab(t)
	l.arm("n1", desk.Order{})
	image := desktest.Image()
	image.Index = digest.Of([]byte("another"))
	l.server.desk = desk.New(desk.Options{Cluster: desktest.Cluster(), Image: image, Ledger: l.ledger, Now: l.clock.Now})
	if s := l.boot(desktest.MAC1, "sn-1"); ticketIn(s) != "" || !strings.Contains(s, "was armed for image") {
		t.Errorf("%s", s)
	}
	l.inEvents("another-image", "was armed for image")
}

func TestServerAddressIsTheOneThatWasReached(t *testing.T) {
	l := newLab(t)
	l.arm("n1", desk.Order{})
	r, err := http.NewRequest("GET", l.url+machine.PathBoot+"?mac="+desktest.MAC1, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	answer, err := l.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	buf := make([]byte, 4096)
	n, _ := answer.Body.Read(buf)
	if s := string(buf[:n]); strings.Contains(s, "evil") || !strings.Contains(s, "slipway.server="+l.url+" ") {
		t.Errorf("%s", s)
	}
}

// An installer is told who else has the ledger, but not twice where it asked.
func TestOthersWithTheSameLedger(t *testing.T) {
	l := newLab(t)
	l.server.also = []string{l.url, "http://10.0.0.2:8080", "http://10.0.0.3:8080"}
	l.arm("n1", desk.Order{})
	if s := l.boot(desktest.MAC1, "sn-1"); !strings.Contains(s, " slipway.server="+l.url+",http://10.0.0.2:8080,http://10.0.0.3:8080 ") {
		t.Errorf("%s", s)
	}
}

// Whoever makes up machines does not fill the ledger, and pushes out no node.
func TestCrowdOfStrangers(t *testing.T) {
	l := newLab(t)
	l.boot(desktest.MAC1, "sn-1")
	for i := range 300 {
		l.boot(fmt.Sprintf("52:54:00:aa:%02x:%02x", i/256, i%256), "")
	}
	fleet, err := l.ledger.Machines(t.Context())
	if err != nil || len(fleet) != 257 {
		t.Errorf("%d machines are remembered, %v", len(fleet), err)
	}
	if m := want[desk.Machine](l, "GET", "/api/v1/machines/n1", operatorToken, nil); m.Identity.Serial != "sn-1" {
		t.Errorf("%+v", m)
	}
}
