package gitops

import (
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// spec is what matters of a Flux Kustomization (kustomize.toolkit.fluxcd.io/v1).
type spec struct {
	Name       string
	Path       string
	Decryption bool
	Declared   string
	Namespace  string // targetNamespace: overrides that of every object
	Patches    []types.Patch
	Components []string
	Substitute map[string]string
	From       []string // substituteFrom: names of ConfigMaps and Secrets
}

// asSpec reads an object as a Kustomization of the repository itself.
func asSpec(o Object) (spec, bool) {
	if o.Kind() != "Kustomization" || !strings.HasPrefix(o.text("apiVersion"), "kustomize.toolkit.fluxcd.io/") {
		return spec{}, false
	}
	var in struct {
		Spec struct {
			Path            string
			TargetNamespace string
			Suspend         bool
			SourceRef       struct{ Kind string }
			Decryption      *struct{ Provider string }
			Patches         []types.Patch
			Components      []string
			PostBuild       struct {
				Substitute     map[string]string
				SubstituteFrom []struct{ Name string }
			}
		}
	}
	raw, err := yaml.Marshal(o.Content)
	if err != nil || yaml.Unmarshal(raw, &in) != nil || in.Spec.SourceRef.Kind != "GitRepository" {
		return spec{}, false
	}
	s := spec{
		Name: o.Name(), Path: clean(in.Spec.Path), Declared: o.From, Namespace: in.Spec.TargetNamespace,
		Decryption: in.Spec.Decryption != nil && in.Spec.Decryption.Provider == "sops",
		Patches:    in.Spec.Patches, Components: in.Spec.Components, Substitute: in.Spec.PostBuild.Substitute,
	}
	for _, from := range in.Spec.PostBuild.SubstituteFrom {
		s.From = append(s.From, from.Name)
	}
	return s, true
}
