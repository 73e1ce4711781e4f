package bootentry

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
)

func TestEntry(t *testing.T) {
	s := Slot{Letter: "a", RootHash: "00ff", Title: "Slipway lab", Version: "20260101.000000", Options: []string{"panic=10", "console=ttyS0"}}
	want := `title      Slipway lab
sort-key   slipway
version    20260101.000000
linux      /slipway/a/vmlinuz
initrd     /slipway/a/initrd.zst
options    slipway.slot=a slipway.roothash=00ff panic=10 console=ttyS0
`
	if got := string(s.Entry()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := s.Path(); got != "loader/entries/slot-a+3.conf" {
		t.Errorf("path %q: without the counter no try is counted", got)
	}
}

func TestInstallerEntry(t *testing.T) {
	want := `title      Slipway installer
sort-key   slipway
version    20260101.000000
linux      /slipway/install/vmlinuz
initrd     /slipway/install/initrd.zst
options    slipway.mode=install console=ttyS0
`
	i := Installer{Title: "Slipway installer", Version: "20260101.000000", Words: []string{"slipway.mode=install", "console=ttyS0"}}
	if got := string(i.Entry()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestOptions(t *testing.T) {
	got := strings.Join(Options(cluster.System{RescueShell: true, RebootAfter: 60, ExtraConsole: []string{"tty0", "ttyS0,115200"}, CommandLine: []string{"mitigations=off"}}), " ")
	want := "slipway.shell=1 slipway.reboot=60 panic=10 console=tty0 console=ttyS0,115200 mitigations=off"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := strings.Join(Options(cluster.System{}), " "); got != "slipway.shell=0 slipway.reboot=0 panic=10" {
		t.Errorf("defaults: %q", got)
	}
}
