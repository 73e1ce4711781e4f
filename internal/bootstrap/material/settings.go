// Package material is what a cluster is made from, before anything of it is touched:
// settings, secrets, the payload of the build, and the GitOps repository with the
// judgement whether Flux could take over from it.
package material

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/secrets"
)

// Settings say what a command works with. Nothing in here is read before it is
// needed.
type Settings struct {
	Cluster cluster.Cluster
	Profile string // path of the profile
	Build   string // directory of the finished build
	Key     string // path of the public key that must have signed it
	State   string // directory of what bootstrap keeps: kubeconfig, snapshots, trusted host keys, the run lock
	Secrets string // path of the SOPS file; empty means beside the profile
	AgeKey  string // path of an age identity; empty means where sops looks
	Repo    string // a checked-out GitOps repository to read instead of fetching it; may be empty

	Getenv func(string) string
	Home   string
	Now    func() time.Time
}

// secretsPath is the SOPS file of the environment.
func (s Settings) secretsPath() string {
	if s.Secrets != "" {
		return s.Secrets
	}
	return filepath.Join(filepath.Dir(s.Profile), s.Cluster.Environment+".secrets.yaml")
}

// identities are the age keys at hand.
func (s Settings) identities() (secrets.Identities, error) {
	return secrets.Find(s.AgeKey, s.Getenv, s.configDir())
}

func (s Settings) configDir() string {
	if dir := s.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(s.Home, ".config")
}

// Active refuses a profile that is for design only.
func (s Settings) Active() error {
	if s.Cluster.Status != cluster.StatusDesignOnly {
		return nil
	}
	return exit.With(exit.Refused, diag.WithHint(fmt.Errorf("%s is %s: nothing may be changed with it", s.Profile, cluster.StatusDesignOnly),
		"set status: active in the profile, in git, when it is meant"))
}

// Unseal decrypts the secrets and makes them unspeakable.
func (s Settings) Unseal(r *secrets.Redactor) (*secrets.File, secrets.Identities, error) {
	ids, err := s.identities()
	if err != nil {
		return nil, ids, err
	}
	r.Add(ids.Values()...)
	f, err := secrets.Open(s.secretsPath(), ids)
	if err != nil {
		return nil, ids, err
	}
	r.Add(f.Values()...)
	return f, ids, nil
}

// Missing says whether an error is that of a file that is not there.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
