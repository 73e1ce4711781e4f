package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/payload/object"
)

// Installed is a release as the cluster has it.
type Installed struct {
	Found       bool
	Revision    int
	Status      string    // Helm's word: deployed, failed, pending-install, ...
	Changed     time.Time // when it got this status
	Description string
	Chart       string // name and version, such as cilium-1.20.2
	Values      map[string]any
	Objects     []object.Ref // what the release consists of
	content     digest.Digest
}

// Pending reports whether somebody is changing the release, or was stopped while
// doing so.
func (i Installed) Pending() bool { return release.Status(i.Status).IsPending() }

// Status reads the newest revision of a release, in one request and one for each
// kind of which it is not known yet whether it lives in namespaces.
func (c Client) Status(ctx context.Context, name, namespace string) (Installed, error) {
	rel, err := c.last(ctx, name, namespace)
	if err != nil || rel == nil {
		return Installed{}, err
	}
	i := Installed{Found: true, Revision: rel.Version, Status: rel.Info.Status.String(), Changed: rel.Info.LastDeployed.Time, Description: rel.Info.Description}
	if rel.Chart != nil && rel.Chart.Metadata != nil {
		i.Chart = rel.Chart.Metadata.Name + "-" + rel.Chart.Metadata.Version
		if i.content, err = sum(rel.Chart); err != nil {
			return i, err
		}
	}
	if i.Values, err = values(rel.Config); err != nil {
		return i, fmt.Errorf("release %s/%s: %w", namespace, name, err)
	}
	i.Objects, err = c.objects(ctx, rel)
	return i, err
}

// last is the newest revision, nil where there is none.
func (c Client) last(ctx context.Context, name, namespace string) (*release.Release, error) {
	cfg, end, err := c.helm(ctx, namespace)
	if err != nil {
		return nil, err
	}
	defer end()
	rel, err := cfg.Releases.Last(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("release %s/%s: %w", namespace, name, err)
	}
	return rel, nil
}

// objects are the references of a release's manifest, with the namespaces in which
// Helm put them.
func (c Client) objects(ctx context.Context, rel *release.Release) ([]object.Ref, error) {
	all, err := kube.Decode("manifest of release "+rel.Name, []byte(rel.Manifest))
	if err != nil {
		return nil, err
	}
	var refs []object.Ref
	for _, o := range all {
		r := object.Of(o)
		namespaced, err := c.Kube.Namespaced(ctx, r.APIVersion, r.Kind)
		switch {
		case errors.Is(err, object.ErrNotFound): // the kind is gone, and so is the object
		case err != nil:
			return nil, err
		case !namespaced:
			r.Namespace = ""
		case r.Namespace == "":
			r.Namespace = rel.Namespace
		}
		refs = append(refs, r)
	}
	return refs, nil
}

// missing are those of the installed objects that the cluster does not have. A Job is
// work that is done once: it goes when its time is over, and that is no damage.
func (c Client) missing(ctx context.Context, refs []object.Ref) ([]object.Ref, error) {
	var gone []object.Ref
	for _, r := range refs {
		if r.Kind == "Job" && r.Group() == "batch" {
			continue
		}
		_, err := c.Kube.Get(ctx, r)
		switch {
		case errors.Is(err, object.ErrNotFound):
			gone = append(gone, r)
		case err != nil:
			return nil, err
		}
	}
	return slices.Clip(gone), nil
}
