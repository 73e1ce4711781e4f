package gitops

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	releaseAPI = "helm.toolkit.fluxcd.io/v2"
	sourceAPI  = "source.toolkit.fluxcd.io/v1"
)

// release writes a HelmRelease that adopts the release which bootstrap installed:
// Flux finds it by its name and the namespace in which Helm stores it.
func (t *tree) release(c Chart, values m) {
	chart := m{"chart": c.Name, "version": c.Version, "sourceRef": m{"kind": "HelmRepository", "name": c.Name}}
	var docs []any
	if c.Repository == "" {
		chart = m{"chart": "./charts/" + c.Name, "sourceRef": m{"kind": "GitRepository", "name": "flux-system", "namespace": "flux-system"}}
	} else {
		docs = append(docs, m{
			"apiVersion": sourceAPI, "kind": "HelmRepository", "metadata": meta(c.Name, c.Namespace),
			"spec": m{"interval": "1h", "url": c.Repository},
		})
	}
	docs = append(docs, m{
		"apiVersion": releaseAPI, "kind": "HelmRelease", "metadata": meta(c.Name, c.Namespace),
		"spec": m{
			"interval": "10m", "releaseName": c.Name, "targetNamespace": c.Namespace, "storageNamespace": c.Namespace,
			"chart":   m{"spec": chart},
			"install": m{"remediation": m{"retries": -1}},
			"upgrade": m{"remediation": m{"retries": 3}},
			"values":  values,
		},
	})
	t.docs("infrastructure/base/"+c.Name+".yaml",
		"# Flux adopts the release that bootstrap installed. Before the hand-over the values must\n"+
			"# stay what they are here: bootstrap parity compares them with what runs.\n", docs...)
}

// existing reads the values of the HelmRelease in a file.
func existing(raw []byte) (m, error) {
	dec := yaml.NewDecoder(strings.NewReader(string(raw)))
	for {
		var doc struct {
			Kind string
			Spec struct{ Values m }
		}
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return nil, errors.New("it holds no HelmRelease")
		} else if err != nil {
			return nil, err
		}
		if doc.Kind == "HelmRelease" {
			return doc.Spec.Values, nil
		}
	}
}

// same compares by what JSON says, so that numbers of different Go types are equal.
func same(a, b any) bool {
	left, err := json.Marshal(a)
	if err != nil {
		return false
	}
	right, err := json.Marshal(b)
	return err == nil && string(left) == string(right)
}

const readme = `# The cluster, as Flux keeps it

    clusters/ENV/                  what Flux is pointed at
    infrastructure/base/           Cilium and Longhorn, as every environment has them
    infrastructure/overlays/ENV/   what only one environment has
    apps/base/, apps/overlays/ENV/ what runs on the cluster

Files that end in .sops.yaml are encrypted: sops FILE edits them. Nothing else may
hold a secret.

bootstrap parity compares the HelmReleases here with what runs; until Flux has taken
over it must find no difference. Afterwards change what you like, one thing at a time.
`
