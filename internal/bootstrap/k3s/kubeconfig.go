package k3s

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/payload/kubeconfig"
	"github.com/slipway/slipway/internal/sequence"
)

// Kubeconfig brings the administrator's kubeconfig to a file of ours, for the API's
// virtual address or with the servers as fallbacks. It holds a key: 0600, in place at
// once or not at all.
func Kubeconfig(o Options, path string, now func() time.Time) sequence.Step {
	step := sequence.Step{
		Layer: layer, Name: "kubeconfig is here", Deadline: configLimit,
		Blind: []sequence.Change{create(path, "there is no cluster yet")},
	}
	return sequence.Of(step,
		func(ctx context.Context) (view, error) {
			v, err := o.look(ctx)
			if err == nil && len(v.decision.Via) == 0 {
				err = sequence.ErrUnseen
			}
			return v, err
		},
		func(v view) ([]sequence.Change, error) {
			why, err := stale(v, path, now())
			if err != nil || why == "" {
				return nil, err
			}
			return []sequence.Change{{Verb: sequence.Alter, What: path, Why: why}}, nil
		},
		func(ctx context.Context, v view, tell sequence.Tell) error {
			via := v.decision.Via[0]
			tell("fetching it from " + via)
			text, err := o.Node(via).Get(ctx, k3sconf.KubeconfigPath)
			if err != nil {
				return err
			}
			out, err := kubeconfig.Make(v.cluster, text)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", k3sconf.KubeconfigPath, via, err)
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return fmt.Errorf("kubeconfig: %w", err)
			}
			return private(path, out)
		})
}

// private writes a file that only its owner can read, whatever was there before:
// renameio.WriteFile would take over the permissions of an older one.
func private(path string, data []byte) error {
	f, err := renameio.NewPendingFile(path, renameio.WithStaticPermissions(0o600))
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	defer f.Cleanup()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return nil
}

// stale says why the file must be made anew, or "".
func stale(v view, path string, now time.Time) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "it is not there", nil
	}
	if err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	if why := kubeconfig.Stale(v.cluster, data, now); why != "" {
		return why, nil
	}
	bundle, err := kubeconfig.CA(data)
	if err != nil {
		return err.Error(), nil
	}
	if ca, err := identity.CAOf(bundle); err != nil || !v.decision.CA.IsZero() && ca != v.decision.CA {
		return "it is of another cluster", nil
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		return "others can read it", nil
	}
	return "", nil
}
