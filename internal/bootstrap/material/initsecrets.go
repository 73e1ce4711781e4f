package material

import (
	"fmt"

	"github.com/slipway/slipway/internal/bootstrap/gitrepo"
	"github.com/slipway/slipway/internal/payload/fluxsync"
	"github.com/slipway/slipway/internal/secrets"
)

// Born is what InitSecrets made.
type Born struct {
	Path       string   `json:"path"`
	Made       []string `json:"made"` // names of values; none when nothing was missing
	Recipients []string `json:"recipients"`
	DeployKey  string   `json:"deployKey,omitempty"` // public half, for the forge
}

// InitSecrets makes the secrets that a cluster must be born with, those that are
// missing only, in a SOPS file for recipients. An existing file keeps its own
// recipients, and one of their keys is needed to add to it.
func InitSecrets(s Settings, recipients []string) (Born, error) {
	ids, err := s.identities()
	if err != nil && s.AgeKey != "" {
		return Born{}, err
	}
	path := s.secretsPath()
	made, err := secrets.Complete(path, recipients, ids, makers(s), s.Now())
	if err != nil {
		return Born{}, err
	}
	b := Born{Path: path, Made: made, Recipients: recipients}
	f, err := secrets.Open(path, ids)
	if err != nil {
		return b, nil // made for others; the keys here need not open it
	}
	b.Recipients = f.Recipients
	if private, ok := f.Get(secrets.GitIdentity); ok {
		b.DeployKey, err = gitrepo.PublicKey(private, keyComment(s))
	}
	return b, err
}

func makers(s Settings) map[string]func() (string, error) {
	out := map[string]func() (string, error){secrets.Token: secrets.NewToken}
	if fluxsync.SSH(s.Cluster) {
		out[secrets.GitIdentity] = func() (string, error) { return gitrepo.NewKey(keyComment(s)) }
	}
	return out
}

func keyComment(s Settings) string {
	return fmt.Sprintf("slipway-%s-%s", s.Cluster.Name, s.Cluster.Environment)
}
