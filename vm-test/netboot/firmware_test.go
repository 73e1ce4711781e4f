package netboot

import (
	"bufio"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/netns"
)

// TestInstallHTTP is the whole way by UEFI HTTP boot: OVMF is told to leave PXE alone.
func TestInstallHTTP(t *testing.T) {
	full(t)
	l := newLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	b := l.blank(t)
	b.fwCfg = map[string]string{"opt/org.tianocore/IPv4PXESupport": "n", "opt/org.tianocore/IPv6PXESupport": "n"}
	install(t, s, b, "firmware=uefi-http")
	if strings.Contains(s.said(t), "msg=tftp") {
		t.Error("something was loaded by TFTP")
	}
}

// TestInstallProxy is the whole way beside a DHCP server that knows nothing of pxed.
func TestInstallProxy(t *testing.T) {
	full(t)
	l := newLab(t)
	router(t, l)
	s := l.serve(t, pxe.ModeProxy)
	install(t, s, l.blank(t), "firmware=uefi-tftp")
}

// router is the network's own DHCP server: dnsmasq, with addresses and nothing else.
func router(t *testing.T, l *lab) {
	t.Helper()
	h := netns.NewHost(t)
	netns.Plug(t, l.bridge, h, "52:54:00:00:00:fe", "10.0.2.3/24")
	cmd := h.Command(t.Context(), "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0",
		"--bind-interfaces", "--interface=eth0", "--dhcp-range=10.0.2.100,10.0.2.120", "--dhcp-authoritative",
		"--dhcp-leasefile="+l.path("leases"), "--user=root", "--log-facility=-", "--log-dhcp", "--pid-file")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	background(t, cmd)
	ready := make(chan bool)
	go func() {
		defer close(ready)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if strings.Contains(lines.Text(), "sockets bound exclusively") {
				ready <- true
			}
		}
	}()
	if !<-ready {
		t.Fatal("dnsmasq does not start")
	}
	// What it says later is read to its end, so that it never waits.
	go func() {
		for range ready {
		}
	}()
}
