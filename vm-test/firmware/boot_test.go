package firmware

import (
	"testing"

	"github.com/slipway/slipway/internal/pxed/pxe"
)

// A machine whose boot order is the network first and its disk second. Its script
// says exit 1, so that one power-on shows every way in turn: PXE, then HTTP boot,
// then the disk.
func TestUEFI(t *testing.T) {
	for _, mode := range []pxe.Mode{pxe.ModeProxy, pxe.ModeDHCP} {
		t.Run(string(mode), func(t *testing.T) {
			l := newLab(t, mode, pxe.Netboot)
			if mode == pxe.ModeProxy {
				l.router()
			}
			m := l.powerOn(ovmf, disk(t))
			l.expect(
				"gave=ipxe", "outcome=probed", "outcome=sent", "gave=script", "http GET /boot/ipxe?mac="+mac+"&uuid="+uuid+"&serial="+serial+"&firmware=uefi",
				"firmware=uefi-http", "http HEAD /artifacts/netboot/ipxe/snponly.efi", "http GET /artifacts/netboot/ipxe/snponly.efi", "http GET /boot/ipxe",
			)
			m.boots("systemd-boot|Linux version|EFI stub")
		})
	}
}

// An installed machine: HTTP boot does not load iPXE a second time.
func TestInstalledMachineReachesItsDisk(t *testing.T) {
	l := newLab(t, pxe.ModeDHCP, pxe.OwnDisk)
	m := l.powerOn(ovmf, disk(t))
	l.expect("gave=ipxe", "http GET /boot/ipxe?", "gave=own-disk", "http HEAD /artifacts/"+pxe.OwnDiskName)
	m.boots("systemd-boot|Linux version|EFI stub")
	l.never("HEAD /artifacts/netboot/ipxe/snponly.efi")
}

// iPXE of 2019 in the card's ROM asks for the script at once, under both firmwares.
func TestOptionROM(t *testing.T) {
	for _, k := range []kind{ovmfROM, seabios} {
		t.Run(k.name, func(t *testing.T) {
			l := newLab(t, pxe.ModeProxy, pxe.Netboot)
			l.router()
			l.powerOn(k, "")
			l.expect("gave=script", "http GET /boot/ipxe?mac=")
			l.never("outcome=sent")
		})
	}
}

// The network's DHCP server names the loader itself and knows nothing of iPXE, as
// some routers can do no better. The proxy beside it still brings iPXE to its
// script, and not to itself again.
func TestRouterThatNamesOnlyTheLoader(t *testing.T) {
	l := newLab(t, pxe.ModeProxy, pxe.Netboot)
	l.router("--dhcp-boot=netboot/ipxe/snponly.efi,," + server.Addr().String())
	l.powerOn(ovmf, "")
	l.expect("outcome=sent", "gave=script", "http GET /boot/ipxe?mac=")
}
