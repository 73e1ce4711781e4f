package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// owners says who may import a library of somebody else: directories, and all
// below them. One library, one owner; the few with several are formats or thin
// layers over the system, and "drivers and up" means every floor that may touch it.
var owners = map[string][]string{
	"github.com/CycloneDX/cyclonedx-go":     {"internal/imagebuild/sbom"},
	"filippo.io/age":                        {"internal/secrets"},
	"github.com/getsops/sops/v3":            {"internal/secrets"},
	"github.com/cilium/cilium":              {"internal/bootstrap/cilium"},
	"go.etcd.io/etcd/api/v3":                {"internal/bootstrap/etcd"},
	"go.etcd.io/etcd/client/v3":             {"internal/bootstrap/etcd", "vm-test"},
	"go.uber.org/zap":                       {"internal/bootstrap/etcd"},
	"google.golang.org/grpc":                {"internal/bootstrap/etcd"},
	"helm.sh/helm/v3":                       {"internal/bootstrap/chart"},
	"sigs.k8s.io/kustomize/api":             {"internal/bootstrap/gitops", "internal/imagebuild/bundle"},
	"sigs.k8s.io/kustomize/kyaml":           {"internal/bootstrap/gitops", "internal/imagebuild/bundle"},
	"sigs.k8s.io/yaml":                      {"internal/bootstrap/gitops"},
	"k8s.io/api":                            {"internal/bootstrap/kube", "vm-test"},
	"k8s.io/apimachinery":                   {"internal/bootstrap/kube", "internal/bootstrap/chart", "vm-test"},
	"k8s.io/cli-runtime":                    {"internal/bootstrap/chart"},
	"k8s.io/client-go":                      {"internal/bootstrap/kube", "internal/bootstrap/chart", "vm-test"},
	"github.com/anatol/devmapper.go":        {"internal/node/slot"},
	"github.com/canonical/go-dqlite":        {"internal/ledger"},
	"github.com/chromedp/cdproto":           {"vm-test"},
	"github.com/chromedp/chromedp":          {"vm-test"},
	"github.com/diskfs/go-diskfs":           {"internal/imagebuild/diskimage", "internal/node/disk"},
	"github.com/dustin/go-humanize":         {"internal/cli", "cmd"},
	"github.com/google/renameio":            {driversAndUp},
	"github.com/go-git/go-git/v5":           {"internal/bootstrap/gitrepo"},
	"github.com/hiddeco/sshsig":             {"internal/artifact"},
	"github.com/insomniacslk/dhcp":          {"internal/pxed/dhcpd", "internal/pxed/pxe", "internal/node", "vm-test"},
	"github.com/klauspost/compress":         {"internal/artifact/unpack", "internal/imagebuild"},
	"github.com/prometheus/client_golang":   {"internal/pxed/metrics"},
	"github.com/pin/tftp/v3":                {testsOnly},
	"github.com/rogpeppe/go-internal":       {testsOnly},
	"github.com/santhosh-tekuri/jsonschema": {testsOnly},
	"github.com/spf13/cobra":                {"internal/cli", "cmd"},
	"github.com/u-root/u-root/pkg/cpio":     {"internal/imagebuild/initrd"},
	"github.com/u-root/u-root/pkg/kmodule":  {"internal/node/kmod"},
	"github.com/u-root/u-root/pkg/mount":    {"internal/node"},
	"github.com/ulikunitz/xz":               {"internal/imagebuild/initrd"},
	"github.com/vbauerster/mpb":             {"internal/cli"},
	"go.yaml.in/yaml/v3":                    {"internal/bootstrap/gitops", "internal/bootstrap/parity", "internal/imagebuild/bundle", "internal/imagebuild/verify", "internal/payload", "internal/pin", "internal/profile/yamltree", "internal/secrets"},
	"golang.org/x/crypto/ssh":               {"internal/artifact", "internal/imagebuild/signkey", "internal/bootstrap/gitrepo", "internal/bootstrap/ssh", "internal/node/persist", "internal/profile/form", "vm-test"},
	"golang.org/x/sync":                     {driversAndUp},
	"golang.org/x/sys":                      {driversAndUp},
	"golang.org/x/term":                     {"cmd/nodeinit", "internal/cli"},
	"pault.ag/go/debian":                    {"internal/pin"},
}

const (
	driversAndUp = "drivers and up"
	testsOnly    = "tests only"
)

// ruleOwners: a library of somebody else is imported by its owner and nobody
// else, so that it can be replaced in one place.
func ruleOwners(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		for _, s := range p.sources {
			for imported, at := range s.imports() {
				if !strings.Contains(strings.Split(imported, "/")[0], ".") || strings.HasPrefix(imported, module) {
					continue
				}
				library, holders := ownersOf(imported)
				switch {
				case library == "":
					out = append(out, fmt.Sprintf("%s: %s has no owner; add it to the table in owners_test.go", at, imported))
				case !s.test && !mayImport(p.dir, holders):
					out = append(out, fmt.Sprintf("%s: %s imports %s, which belongs to %s", at, p.dir, imported, strings.Join(holders, ", ")))
				}
			}
		}
	}
	return out
}

func ownersOf(imported string) (library string, holders []string) {
	for key := range owners {
		if (imported == key || strings.HasPrefix(imported, key+"/")) && len(key) > len(library) {
			library = key
		}
	}
	return library, owners[library]
}

func mayImport(dir string, holders []string) bool {
	return slices.ContainsFunc(holders, func(h string) bool {
		if own, known := floorOf(dir); h == driversAndUp && known {
			return own >= drivers
		}
		return dir == h || strings.HasPrefix(dir, h+"/")
	})
}
