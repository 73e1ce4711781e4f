package chart

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// shown is how many differing values, and missing objects, are named.
const shown = 3

// Changes are what Apply would do; nothing means that the newest revision is
// deployed, has this chart and these values, and that all its objects are there.
func (c Client) Changes(ctx context.Context, r Release) ([]sequence.Change, error) {
	_, changes, err := c.compare(ctx, r)
	return changes, err
}

func (c Client) compare(ctx context.Context, r Release) (Installed, []sequence.Change, error) {
	w, err := wish(r)
	if err != nil {
		return Installed{}, nil, err
	}
	is, err := c.Status(ctx, r.Name, r.Namespace)
	if err != nil {
		return is, nil, err
	}
	if err := refuse(r, is); err != nil {
		return is, nil, err
	}
	changes := decide(w, is)
	if len(changes) > 0 {
		return is, changes, nil
	}
	gone, err := c.missing(ctx, is.Objects)
	if err != nil {
		return is, nil, err
	}
	return is, restore(w, gone), nil
}

// wanted is what of a release is compared.
type wanted struct {
	what    string // for people
	chart   string // name and version
	content digest.Digest
	values  map[string]any
}

func wish(r Release) (wanted, error) {
	c, err := r.load()
	if err != nil {
		return wanted{}, err
	}
	w := wanted{chart: c.Metadata.Name + "-" + c.Metadata.Version}
	w.what = fmt.Sprintf("Helm release %s, chart %s", r, w.chart)
	if w.values, err = values(r.Values); err != nil {
		return w, fmt.Errorf("values of release %s: %w", r, err)
	}
	// Helm keeps a chart as it is after its dependencies were looked through.
	if err := chartutil.ProcessDependenciesWithMerge(c, w.values); err != nil {
		return w, fmt.Errorf("chart of release %s: %w", r, err)
	}
	w.content, err = sum(c)
	return w, err
}

// refuse stops before a release that somebody is taking away.
func refuse(r Release, is Installed) error {
	if release.Status(is.Status) != release.StatusUninstalling {
		return nil
	}
	err := fmt.Errorf("release %s is being uninstalled since %s", r, is.Changed.UTC().Format("2006-01-02 15:04:05Z"))
	return exit.With(exit.Refused, diag.WithHint(err, fmt.Sprintf("let it end, or end it with: helm uninstall %s -n %s", r.Name, r.Namespace)))
}

// decide compares what is wanted with what is there.
func decide(w wanted, is Installed) []sequence.Change {
	alter := func(why string) []sequence.Change {
		return []sequence.Change{{Verb: sequence.Alter, What: w.what, Why: why}}
	}
	switch status := release.Status(is.Status); {
	case !is.Found || status == release.StatusUninstalled:
		return []sequence.Change{{Verb: sequence.Create, What: w.what, Why: "is not installed"}}
	case status.IsPending():
		return alter(fmt.Sprintf("revision %d is %s since %s; whoever did it was stopped", is.Revision, status, is.Changed.UTC().Format("2006-01-02 15:04:05Z")))
	case status != release.StatusDeployed:
		return alter(fmt.Sprintf("revision %d is %s: %s", is.Revision, status, is.Description))
	case is.Chart != w.chart:
		return alter("has chart " + is.Chart)
	case is.content != w.content:
		return alter("has another chart of the same version")
	}
	if paths := object.Differences(is.Values, w.values); len(paths) > 0 {
		return alter("other values: " + few(paths))
	}
	return nil
}

func restore(w wanted, gone []object.Ref) []sequence.Change {
	if len(gone) == 0 {
		return nil
	}
	var names []string
	for _, r := range gone {
		names = append(names, r.String())
	}
	slices.Sort(names)
	return []sequence.Change{{Verb: sequence.Alter, What: w.what, Why: "of its objects these are gone: " + few(names)}}
}

func few(names []string) string {
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}
