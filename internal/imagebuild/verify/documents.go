package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/provenance"
	"github.com/slipway/slipway/internal/imagebuild/sbom"
)

// maxDocument bounds the documents that are read as a whole, bytes.
const maxDocument = 32 << 20

// documents checks the plan, the bill of materials and the provenance: that they
// can be read, and speak of this build.
func (e *examination) documents(_ context.Context, usable map[string]bool) error {
	e.document(artifact.RolePlan, usable, func(data []byte) error {
		got, err := planDigest(data)
		if err == nil && got != e.index.Plan {
			return fmt.Errorf("is another plan (%s) than the index names (%s)", got.Short(), e.index.Plan.Short())
		}
		return err
	})
	e.document(artifact.RoleSBOM, usable, func(data []byte) error {
		n, err := sbom.Check(data, e.index.Plan, e.index.Epoch)
		e.report.Packages = n
		return err
	})
	e.document(artifact.RoleProvenance, usable, func(data []byte) error { return provenance.Check(data, e.index) })
	return nil
}

// planDigest is the digest of a plan document: of its JSON without white space.
// It does not go through the plan's type, which may have grown since the build.
func planDigest(data []byte) (digest.Digest, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return digest.Digest{}, err
	}
	return digest.Of(compact.Bytes()), nil
}

func (e *examination) document(role artifact.Role, usable map[string]bool, check func([]byte) error) {
	f, ok := e.index.One(role)
	switch {
	case !ok:
		e.found.add(artifact.IndexName, "no file has the role %s", role)
		return
	case !usable[f.Name] || e.found.any(f.Name):
		return
	}
	data, err := readSmall(e.root, f.Name, maxDocument)
	if err == nil {
		err = check(data)
	}
	if err != nil {
		e.found.add(f.Name, "%s", reason(err))
	}
}

// seeds checks that each node has what NoCloud needs, in the form it needs.
func (e *examination) seeds(_ context.Context, usable map[string]bool) error {
	nodes := map[string]map[string]bool{}
	for _, f := range e.index.Find(artifact.RoleSeed) {
		base := f.Name[strings.LastIndexByte(f.Name, '/')+1:]
		if nodes[f.Node] == nil {
			nodes[f.Node] = map[string]bool{}
		}
		nodes[f.Node][base] = true
		if !usable[f.Name] || e.found.any(f.Name) {
			continue
		}
		data, err := readSmall(e.root, f.Name, maxDocument)
		if err == nil {
			err = seedDocument(base, data)
		}
		if err != nil {
			e.found.add(f.Name, "%s", reason(err))
		}
	}
	for node, have := range nodes {
		for _, need := range []string{"meta-data", "user-data"} {
			if !have[need] {
				e.found.add(artifact.IndexName, "node %s has no %s", node, need)
			}
		}
	}
	return nil
}

func seedDocument(name string, data []byte) error {
	switch name {
	case "meta-data", "user-data", "network-config", "vendor-data":
	default:
		return nil // an image of a seed, checked by its digest
	}
	if name == "user-data" && !bytes.HasPrefix(data, []byte("#cloud-config\n")) {
		return fmt.Errorf("does not start with #cloud-config")
	}
	var doc map[string]any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("is not a YAML mapping: %v", err)
	}
	if id, ok := doc["instance-id"].(string); name == "meta-data" && (!ok || id == "") {
		return fmt.Errorf("has no instance-id")
	}
	return nil
}
