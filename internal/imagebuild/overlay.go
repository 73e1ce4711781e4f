package imagebuild

import (
	"github.com/slipway/slipway/images"
	"github.com/slipway/slipway/internal/fstree"
)

func overlayTree() (fstree.Tree, error) {
	fsys, err := images.Rootfs()
	if err != nil {
		return fstree.Tree{}, err
	}
	return fstree.FromFS(fsys)
}
func dropList() ([]string, error) {
	return []string{"usr/share/doc/**", "usr/share/man/**", "usr/share/locale/**", "var/cache/apt/**", "etc/ssh/ssh_host_*", "etc/hostname", "etc/resolv.conf", "var/lib/apt/lists/**", "var/log/**"}, nil
}
