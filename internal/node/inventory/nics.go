package inventory

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/machine"
)

func (s Sources) nics() []machine.NIC {
	var out []machine.NIC
	seen := map[string]bool{}
	for _, name := range s.names("class/net") {
		dir := path.Join("class/net", name)
		if !s.exists(dir, "device") {
			continue // nothing behind it
		}
		mac, err := machine.ParseMAC(s.file(dir, "address"))
		if err != nil || seen[string(mac)] {
			continue
		}
		seen[string(mac)] = true
		n := machine.NIC{
			Name: name, MAC: string(mac), Driver: s.driver(dir),
			Link: s.file(dir, "carrier") == "1",
			Boot: strings.EqualFold(string(mac), s.BootMAC),
		}
		if speed := s.number(dir, "speed"); n.Link && speed > 0 {
			n.Mbps = int(speed)
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b machine.NIC) int { return strings.Compare(a.Name, b.Name) })
	return out[:min(len(out), maxItems)]
}

func (s Sources) driver(dir string) string {
	target, err := fs.ReadLink(s.Sys, path.Join(dir, "device/driver"))
	if err != nil {
		return ""
	}
	return path.Base(target)
}
