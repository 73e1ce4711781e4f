package gitops

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func input() Input {
	return Input{
		Environment: "dev", Path: "clusters/dev", Recipients: []string{"age1b", "age1a"},
		Charts: []Chart{{
			Name: "cilium", Namespace: "kube-system", Version: "1.20.2", Repository: "https://charts.example/",
			Values: m{"k8sServicePort": 6443, "operator": m{"replicas": 2, "rollOutPods": true}},
		}},
	}
}

func TestStarterIsYAML(t *testing.T) {
	files, err := Starter(input())
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		var v any
		if err := yaml.Unmarshal(data, &v); err != nil && strings.HasSuffix(name, ".yaml") {
			t.Errorf("%s: %v\n%s", name, err, data)
		}
	}
	release := string(files["infrastructure/base/cilium.yaml"])
	for _, want := range []string{"releaseName: cilium", "targetNamespace: kube-system", "storageNamespace: kube-system", `version: "1.20.2"`, "kind: HelmRepository"} {
		if !strings.Contains(release, want) {
			t.Errorf("the HelmRelease has no %s:\n%s", want, release)
		}
	}
	if !strings.Contains(string(files[".sops.yaml"]), "age1a,age1b") {
		t.Errorf("sops rules:\n%s", files[".sops.yaml"])
	}
}

// The second environment keeps the base and lays over it what it has of its own.
func TestSecondEnvironment(t *testing.T) {
	first, err := Starter(input())
	if err != nil {
		t.Fatal(err)
	}
	in := input()
	in.Environment, in.Path, in.Existing = "prod", "clusters/prod", first
	in.Charts[0].Values = m{"k8sServicePort": 6443, "operator": m{"replicas": 1}, "debug": true}
	second, err := Starter(in)
	if err != nil {
		t.Fatal(err)
	}
	for name := range second {
		if _, there := first[name]; there {
			t.Errorf("%s is written again", name)
		}
	}
	var patch struct{ Spec struct{ Values m } }
	if err := yaml.Unmarshal(second["infrastructure/overlays/prod/cilium.yaml"], &patch); err != nil {
		t.Fatal(err)
	}
	want := m{"debug": true, "operator": m{"replicas": 1, "rollOutPods": nil}}
	if !reflect.DeepEqual(patch.Spec.Values, want) {
		t.Errorf("overlay %v, want %v", patch.Spec.Values, want)
	}
}

func TestChartInTheRepository(t *testing.T) {
	in := input()
	in.Charts[0].Repository = ""
	files, err := Starter(in)
	if err != nil {
		t.Fatal(err)
	}
	release := string(files["infrastructure/base/cilium.yaml"])
	if strings.Contains(release, "HelmRepository") || !strings.Contains(release, "./charts/cilium") {
		t.Errorf("release:\n%s", release)
	}
}
