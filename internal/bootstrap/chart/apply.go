package chart

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/sequence"
)

// hookTime bounds the hooks of a chart. Cilium and Longhorn have none in what we
// install; a hook that waits for pods could not end before there is a network.
const hookTime = 5 * time.Minute

// Apply installs or upgrades a release, repairs one whose last change was stopped,
// and does nothing where nothing is to do. It does not wait for pods: without a
// network there are none (that is what the first release brings). tell may be nil.
func (c Client) Apply(ctx context.Context, r Release, tell sequence.Tell) error {
	is, changes, err := c.compare(ctx, r)
	if err != nil || len(changes) == 0 {
		return err
	}
	loaded, err := r.load()
	if err != nil {
		return err
	}
	given, err := values(r.Values)
	if err != nil {
		return fmt.Errorf("values of release %s: %w", r, err)
	}
	cfg, end, err := c.helm(ctx, r.Namespace)
	if err != nil {
		return err
	}
	defer end()
	if is.Pending() {
		say(tell, fmt.Sprintf("for the record of revision %d, which was left %s, to be closed", is.Revision, is.Status))
		if err := closeRecord(cfg, r.Name); err != nil {
			return fmt.Errorf("release %s: %w", r, err)
		}
	}
	say(tell, fmt.Sprintf("for the API server to take the objects of chart %s %s", loaded.Name(), loaded.Metadata.Version))
	if !is.Found || is.Status == release.StatusUninstalled.String() {
		err = install(ctx, cfg, r, loaded, given)
	} else {
		err = upgrade(ctx, cfg, r, loaded, given)
	}
	return explain(ctx, r, err)
}

func say(tell sequence.Tell, words string) {
	if tell != nil {
		tell(words)
	}
}

// closeRecord ends the record of a change that was stopped. What it had done stays,
// and the upgrade that follows goes on from it: as long as a record says pending,
// Helm and Flux take somebody to be at work and refuse.
func closeRecord(cfg *action.Configuration, name string) error {
	rel, err := cfg.Releases.Last(name)
	if err != nil {
		return err
	}
	if !rel.Info.Status.IsPending() {
		return nil
	}
	rel.SetStatus(release.StatusFailed, "stopped while "+rel.Info.Status.String())
	return cfg.Releases.Update(rel)
}

func install(ctx context.Context, cfg *action.Configuration, r Release, c *chart.Chart, given map[string]any) error {
	i := action.NewInstall(cfg)
	i.ReleaseName, i.Namespace = r.Name, r.Namespace
	i.Replace = true // of a release that was uninstalled and kept its history
	i.Timeout = hookTime
	i.DisableOpenAPIValidation = true // the API server checks them as well
	_, err := ended(ctx, func() (*release.Release, error) { return i.Run(c, given) })
	return err
}

func upgrade(ctx context.Context, cfg *action.Configuration, r Release, c *chart.Chart, given map[string]any) error {
	u := action.NewUpgrade(cfg)
	u.Namespace = r.Namespace
	u.ResetValues = true // what is not wanted any more must not live on
	u.MaxHistory = keep
	u.Timeout = hookTime
	u.DisableOpenAPIValidation = true
	_, err := ended(ctx, func() (*release.Release, error) { return u.Run(r.Name, c, given) })
	return err
}

// ended runs an action of Helm to its end: when ctx is done its requests fail, and
// so does it.
func ended(ctx context.Context, run func() (*release.Release, error)) (*release.Release, error) {
	rel, err := run()
	if ctx.Err() != nil {
		return rel, context.Cause(ctx)
	}
	return rel, err
}

// explain puts Helm's errors in our words where a person can do something.
func explain(ctx context.Context, r Release, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("release %s: %w", r, err)
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return wrapped
	}
	if strings.Contains(err.Error(), "invalid ownership metadata") {
		return diag.WithHint(wrapped, "somebody else made that object; delete it, or see who did: kubectl get -o yaml")
	}
	return wrapped
}
