package pin_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type renovate struct {
	CustomManagers []struct {
		CustomType             string
		ManagerFilePatterns    []string
		MatchStrings           []string
		ExtractVersionTemplate string
	}
	PackageRules []struct {
		MatchFileNames   []string
		PostUpgradeTasks struct {
			Commands      []string
			FileFilters   []string
			ExecutionMode string
		}
	}
}

type found struct{ value, datasource, versioning, extract string }

// apply does what Renovate does with a file: it returns what was found, by name.
func (r renovate) apply(t *testing.T, file, text string) map[string][]found {
	t.Helper()
	out := map[string][]found{}
	for _, m := range r.CustomManagers {
		pattern := strings.TrimSuffix(strings.TrimPrefix(m.ManagerFilePatterns[0], "/"), "/")
		if m.CustomType != "regex" || !regexp.MustCompile(pattern).MatchString(file) {
			continue
		}
		for _, s := range m.MatchStrings {
			re := regexp.MustCompile(s)
			for _, hit := range re.FindAllStringSubmatch(text, -1) {
				get := func(name string) string { return hit[re.SubexpIndex(name)] }
				out[get("depName")] = append(out[get("depName")], found{get("currentValue"), get("datasource"), get("versioning"), m.ExtractVersionTemplate})
			}
		}
	}
	return out
}

func TestRenovateFindsEveryVersion(t *testing.T) {
	var r renovate
	data, err := os.ReadFile("../../renovate.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile("../../profiles/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		K3s, Longhorn, Flux struct{ Version string }
		Cilium              struct {
			Version string
			Gateway string `yaml:"gatewayAPIVersion"`
		}
	}
	if err := yaml.Unmarshal(base, &p); err != nil {
		t.Fatal(err)
	}
	hits := r.apply(t, "profiles/base.yaml", string(base))
	want := map[string]string{
		"k3s-io/k3s": p.K3s.Version, "longhorn/longhorn": p.Longhorn.Version, "fluxcd/flux2": p.Flux.Version,
		"cilium/cilium": p.Cilium.Version, "kubernetes-sigs/gateway-api": p.Cilium.Gateway,
	}
	for dep, version := range want {
		hit := hits[dep]
		if len(hit) != 1 || hit[0].value != version || version == "" || hit[0].datasource != "github-releases" {
			t.Errorf("%s %s is found as %+v", dep, version, hit)
			continue
		}
		checkTag(t, dep, hit[0])
	}
	if len(hits) != len(want) {
		t.Errorf("found %v, want %v", hits, want)
	}
}

// checkTag sees that a tag of the project comes out as the profile writes it.
func checkTag(t *testing.T, dep string, f found) {
	t.Helper()
	version := f.value
	tag := "v" + strings.TrimPrefix(version, "v")
	got := tag
	if f.extract != "" {
		got = regexp.MustCompile(f.extract).FindStringSubmatch(tag)[1]
	}
	if got != version {
		t.Errorf("%s: the tag %s becomes %s in the profile, want %s", dep, tag, got, version)
	}
	if re, ok := strings.CutPrefix(f.versioning, "regex:"); ok && !regexp.MustCompile(re).MatchString(version) {
		t.Errorf("%s: the versioning %s does not know %s", dep, re, version)
	}
}

func TestRenovatePinsWhatItRaises(t *testing.T) {
	var r renovate
	data, err := os.ReadFile("../../renovate.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	make, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	tasks := r.PackageRules[0].PostUpgradeTasks
	if len(tasks.Commands) != 1 || tasks.Commands[0] != "make pin" || tasks.FileFilters[0] != "profiles/*.lock" {
		t.Errorf("tasks are %+v", tasks)
	}
	if !regexp.MustCompile(`(?m)^pin:`).Match(make) {
		t.Error("the Makefile has no target pin")
	}
}
