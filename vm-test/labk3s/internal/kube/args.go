// Package kube runs the parts of Kubernetes inside this process: the API server,
// the controller manager, the scheduler and the kubelet. They are the upstream ones;
// only their programs' main functions are done without, because each of those wants
// the process's signals for itself.
package kube

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// Args are flags of a part without dashes, "name=value".
type Args []string

// with adds what the user wants: a flag of the user's replaces ours of that name.
func (a Args) with(user []string) Args {
	named := map[string]bool{}
	for _, arg := range user {
		named[name(arg)] = true
	}
	var out Args
	for _, arg := range a {
		if !named[name(arg)] {
			out = append(out, arg)
		}
	}
	for _, arg := range user {
		out = append(out, strings.TrimLeft(arg, "-"))
	}
	return out
}

func name(arg string) string {
	n, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return n
}

// parse hands the flags to a part, and sets the features of all parts, which share
// them.
func (a Args) parse(part string, sets cliflag.NamedFlagSets, registry compatibility.ComponentGlobalsRegistry) error {
	all := pflag.NewFlagSet(part, pflag.ContinueOnError)
	all.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, fs := range sets.FlagSets {
		all.AddFlagSet(fs)
	}
	if err := a.into(part, all); err != nil {
		return err
	}
	return registry.Set()
}

func (a Args) into(part string, fs *pflag.FlagSet) error {
	var dashed []string
	for _, arg := range a {
		dashed = append(dashed, "--"+arg)
	}
	slog.Info("Running "+part, "flags", strings.Join(dashed, " "))
	if err := fs.Parse(dashed); err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return nil
}

// Prepare sets once and for all what the parts share: logging, with its verbosity v,
// and a feature that the controller manager wants and would set too late, after the
// API server has taken the features as they are.
func Prepare(v int) error {
	c := logsapi.NewLoggingConfiguration()
	c.Verbosity = logsapi.VerbosityLevel(v)
	if err := logsapi.ValidateAndApply(c, nil); err != nil {
		return err
	}
	return utilfeature.DefaultMutableFeatureGate.OverrideDefaultAtVersion(
		featuregate.Feature(clientfeatures.WatchListClient), true, version.MustParse("1.34"))
}
