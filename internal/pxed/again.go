package pxed

import (
	"net/netip"

	"github.com/slipway/slipway/internal/pxed/tftpd"
)

// scripted are the boot loaders, but for iPXE that asks for a loader once more: it
// was told to by a DHCP server that knows nothing of iPXE, and is given its script.
type scripted struct {
	tftpd.Files
	server *server
}

// File implements tftpd.Files.
func (f scripted) File(client netip.Addr, name string) ([]byte, error) {
	content, err := f.Files.File(client, name)
	if err != nil || f.server.dhcp == nil {
		return content, err
	}
	if script := f.server.dhcp.Script(client); script != nil {
		return script, nil
	}
	return content, nil
}
