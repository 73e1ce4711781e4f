package parity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
)

// networking are the values on which cluster networking hangs: the wrong one cuts
// nodes off from the API or pods from each other (Cilium's documentation, "Kubernetes
// without kube-proxy", "IPAM", "Routing").
var networking = []string{
	"kubeProxyReplacement", "k8sServiceHost", "k8sServicePort", "ipam", "routingMode", "tunnelProtocol", "tunnelPort",
	"ipv4", "ipv6", "ipv4NativeRoutingCIDR", "ipv6NativeRoutingCIDR", "autoDirectNodeRoutes", "devices", "cni", "cluster",
	"endpointRoutes", "enableIPv4Masquerade", "enableIPv6Masquerade", "bpf", "socketLB", "nodePort", "loadBalancer",
	"encryption", "l2announcements", "externalIPs", "hostPort", "gatewayAPI", "identityAllocationMode", "kubeProxyReplacementHealthzBindAddr",
}

// hidden stands for a value of an encrypted file.
const hidden = "hidden (encrypted)"

const unset = "not set"

// values compares the values, and what the chart makes of them.
func (j *judge) values(r release) error {
	sources, ok := j.sources(r)
	if !ok {
		return nil
	}
	var theirs map[string]any
	for _, s := range sources {
		theirs = merge(theirs, s.values)
	}
	ours, err := j.chart.Effective(j.running.Values)
	if err != nil {
		return err
	}
	effective, err := j.chart.Effective(theirs)
	if err != nil {
		return err
	}
	j.verdict.Objects, err = j.rendered(theirs)
	if err != nil {
		return err
	}
	for _, d := range differences(nil, ours, effective) {
		j.difference(r, sources, d)
	}
	if len(j.verdict.Objects) > 0 && !slices.ContainsFunc(j.verdict.Differences, func(d Difference) bool { return d.Renders }) {
		j.say(r, []string{"spec", "values"}, "compare both with bootstrap parity -o json", "the same values render other objects: %s", strings.Join(j.verdict.Objects, ", "))
	}
	return nil
}

// leaf is a value that is not the same on both sides.
type leaf struct {
	path         []string
	ours, theirs any
}

func differences(path []string, a, b any) []leaf {
	left, lok := a.(map[string]any)
	right, rok := b.(map[string]any)
	if !lok || !rok {
		if same(a, b) {
			return nil
		}
		return []leaf{{slices.Clone(path), a, b}}
	}
	keys := maps.Clone(left)
	maps.Copy(keys, right)
	var out []leaf
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, differences(append(path, key), left[key], right[key])...)
	}
	return out
}

// same compares by what JSON says, so that numbers of different Go types are equal,
// and an empty map or list equals one that is not set.
func same(a, b any) bool { return encode(a) == encode(b) }

func encode(v any) string {
	switch t := v.(type) {
	case map[string]any:
		if len(t) == 0 {
			return "null"
		}
	case []any:
		if len(t) == 0 {
			return "null"
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

func (j *judge) difference(r release, sources []source, l leaf) {
	d := Difference{
		Path: strings.Join(l.path, "."), Running: show(l.ours), Repository: show(l.theirs),
		Networking: slices.Contains(networking, l.path[0]), Renders: len(j.verdict.Objects) > 0,
	}
	from, set := setBy(sources, l.path)
	if set {
		d.Pos = j.place(from, l)
		if from.secret {
			d.Repository = hidden
			if d.Running != unset {
				d.Running = hidden
			}
		}
	} else {
		d.Pos = j.near(r.Object, kind, r.name(), append([]string{"spec", "values"}, l.path...))
	}
	j.verdict.Differences = append(j.verdict.Differences, d)
	if d.Renders || d.Networking {
		j.verdict.Findings = append(j.verdict.Findings, d.finding(j.running.Chart))
	}
}

func (d Difference) finding(chart string) diag.Finding {
	what := "a value of " + chart
	if d.Networking {
		what = "cluster networking"
	}
	hint := fmt.Sprintf("make it %s in the repository; what runs changes by itself after the hand-over, one change at a time", d.Running)
	if d.Running == unset {
		hint = "remove it from the repository, and add it again after the hand-over"
	}
	f := diag.Finding{Pos: d.Pos, Hint: hint, Message: fmt.Sprintf("%s would change: %s is %s here, and %s in the cluster", what, d.Path, d.Repository, d.Running)}
	if d.Repository == hidden {
		f.Message = fmt.Sprintf("%s would change: %s is another one here, in an encrypted file, than in the cluster", what, d.Path)
		f.Hint = "look at the file with sops, and make the value the one of the profile"
	}
	return f
}

func show(v any) string {
	if v == nil {
		return unset
	}
	return encode(v)
}

// setBy is the last source that sets a path or something above it.
func setBy(sources []source, path []string) (source, bool) {
	for _, s := range slices.Backward(sources) {
		var v any = s.values
		ok := len(s.values) > 0
		for _, key := range path {
			m, isMap := v.(map[string]any)
			if !isMap {
				break // a whole value that stands above the path
			}
			if v, ok = m[key]; !ok {
				break
			}
		}
		if ok {
			return s, true
		}
	}
	return source{}, false
}

// place finds where a source sets a path: where its value is written as it counts,
// else the last place where it is written at all, else a parent.
func (j *judge) place(s source, l leaf) diag.Pos {
	for n := len(l.path); n > 0; n-- {
		at := append(slices.Clone(s.under), l.path[:n]...)
		places := j.repo.Locate(s.kind, s.name, at...)
		if len(places) == 0 {
			continue
		}
		for _, p := range slices.Backward(places) {
			if p.Value == fmt.Sprint(l.theirs) {
				return p.Pos
			}
		}
		return places[len(places)-1].Pos
	}
	for _, o := range j.repo.Find(s.kind, s.name) {
		return j.near(o, s.kind, s.name, s.under)
	}
	return diag.Pos{}
}

// rendered names the objects that differ when the chart is rendered with either
// side's values. Certificates are left out: each rendering makes new ones.
func (j *judge) rendered(theirs map[string]any) ([]string, error) {
	a, err := j.chart.Render(j.running.Values)
	if err != nil {
		return nil, err
	}
	b, err := j.chart.Render(theirs)
	if err != nil {
		return nil, fmt.Errorf("rendering %s with the repository's values: %w", j.running.Chart, err)
	}
	left, right := named(a), named(b)
	all := maps.Clone(left)
	maps.Copy(all, right)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !same(left[name], right[name]) {
			out = append(out, name)
		}
	}
	return out, nil
}

func named(objects []map[string]any) map[string]any {
	out := map[string]any{}
	for _, o := range objects {
		name := fmt.Sprintf("%s %s", text(o, "kind"), strings.TrimPrefix(text(o, "metadata", "namespace")+"/"+text(o, "metadata", "name"), "/"))
		out[name] = withoutCertificates(o)
	}
	return out
}

// withoutCertificates blanks the data of Secrets that hold certificates, of any kind
// of encoding: kubernetes.io/tls, and those with a ca.crt.
func withoutCertificates(o map[string]any) map[string]any {
	if text(o, "kind") != "Secret" {
		return o
	}
	content, ok := dig(o, "data").(map[string]any)
	if !ok {
		content, _ = dig(o, "stringData").(map[string]any)
	}
	if _, ca := content["ca.crt"]; text(o, "type") != "kubernetes.io/tls" && !ca {
		return o
	}
	out := maps.Clone(o)
	delete(out, "data")
	delete(out, "stringData")
	return out
}
