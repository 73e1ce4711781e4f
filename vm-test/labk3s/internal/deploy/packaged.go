package deploy

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
)

//go:embed coredns.yaml
var coredns string

// packaged are the components that come with k3s and with this, by what `disable`
// calls them. The others of k3s (traefik, servicelb, local-storage, metrics-server)
// are not here, whether wanted or not.
func packaged() map[string]string { return map[string]string{"coredns": coredns} }

// CoreDNSImage is the image of the packaged DNS server; the lab brings it as a
// tarball.
const CoreDNSImage = "rancher/mirrored-coredns-coredns:1.13.1"

// Stage writes the packaged components into the directory of manifests, except those
// that are not wanted.
func Stage(dir string, s settings.Settings) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, manifest := range packaged() {
		path := filepath.Join(dir, name+".yaml")
		if slices.Contains(s.Disable, name) {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			continue
		}
		filled := strings.NewReplacer(
			"%{CLUSTER_DNS}%", s.ClusterDNS,
			"%{CLUSTER_DOMAIN}%", s.ClusterDomain,
			"%{IMAGE}%", image(s.SystemRegistry, CoreDNSImage),
		).Replace(manifest)
		if err := os.WriteFile(path, []byte(filled), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func image(registry, name string) string {
	if registry == "" {
		return name
	}
	return strings.TrimSuffix(registry, "/") + "/" + name
}
