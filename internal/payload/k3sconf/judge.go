package k3sconf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
)

// judge finds what a line of a drop-in undoes. before and after are the key's value
// around that line; ours is what config.yaml says.
func judge(ours settings, l line, before, after setting, problems *diag.List) {
	report := func(message, hint string) {
		problems.Add(diag.Finding{Pos: l.pos, Path: l.source, Message: message, Hint: hint})
	}
	if full, short := otherNames[l.key]; short {
		report(fmt.Sprintf("%s is %s, which is Slipway's", l.key, full), "remove it; "+Owner(full))
		return
	}
	hint := Owner(l.key)
	if hint == "" {
		return
	}
	wanted, ok := ours.get(l.key)
	switch {
	case !ok:
		report("the key "+l.key+" is Slipway's", "remove it; "+hint)
	case wanted.list:
		judgeList(wanted, l, before, after, report)
	case !slices.Equal(wanted.values, after.values):
		report(fmt.Sprintf("the key %s is Slipway's, and this changes it", l.key), "remove it; "+hint)
	}
}

// judgeList: items may be added with a plus, none of ours may go. A list that is
// written without a plus takes the place of ours, whatever it holds.
func judgeList(wanted setting, l line, before, after setting, report func(message, hint string)) {
	lost := missing(wanted.values, after.values)
	if len(lost) > len(missing(wanted.values, before.values)) {
		what := fmt.Sprintf("this list takes the place of %s, and loses %s", l.key, strings.Join(lost, ", "))
		if l.key == "disable" {
			what = fmt.Sprintf("this list takes the place of disable, and enables %s again", strings.Join(lost, ", "))
		}
		report(what, fmt.Sprintf("write %s+: to append; in every later file as well, or that one takes it all away", l.key))
	}
	if l.key != "disable" {
		return
	}
	for _, item := range split(l.value.values) {
		if key := ownKey(item); key != "" {
			report(fmt.Sprintf("%s is no item of disable: the key is %s", item, key), "remove it; Slipway sets "+key+" already")
		} else if item == "coredns" {
			report("without CoreDNS no name is found in the cluster", "let bootstrap finish first; another DNS server can come with Flux")
		}
	}
}

// missing are the items of want that have does not hold. One item may hold several,
// separated by commas: k3s splits them.
func missing(want, have []string) []string {
	all := split(have)
	var out []string
	for _, w := range want {
		if !slices.Contains(all, w) {
			out = append(out, w)
		}
	}
	return out
}

func split(items []string) []string {
	var out []string
	for _, i := range items {
		for part := range strings.SplitSeq(i, ",") {
			out = append(out, strings.TrimSpace(part))
		}
	}
	return out
}

// ownKey is the key of what people take for items of disable.
func ownKey(item string) string {
	switch item {
	case "network-policy", "kube-proxy", "helm-controller", "cloud-controller", "scheduler":
		return "disable-" + item
	}
	return ""
}

// otherNames are short and former names of keys: the same flag, past the rules that
// go by the long name.
var otherNames = map[string]string{
	"t": "token", "s": "server", "d": "data-dir", "i": "node-ip", "c": "config", "o": "write-kubeconfig",
	"no-deploy": "disable", "no-flannel": "flannel-backend", "cluster-secret": "token",
}
