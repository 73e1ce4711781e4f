package material

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
)

// payloadDir is where a build keeps what a cluster starts with.
const payloadDir = "payload/"

// maxPayload bounds one file of it, bytes; the largest, Cilium's chart, has 0.3 MiB.
const maxPayload = 64 << 20

// OpenPayload reads what the build holds for a cluster's beginning: files that its
// signed index lists, each with the digest that stands there. The build must be of
// the profile's environment.
func OpenPayload(s Settings) (*Payload, error) {
	root, err := os.OpenRoot(s.Build)
	if err != nil {
		return nil, diag.WithHint(fmt.Errorf("opening build: %w", err), "make one with imagebuild build -p "+s.Profile+" -O "+s.Build)
	}
	defer root.Close()
	index, err := s.index(root)
	if err != nil {
		return nil, fmt.Errorf("build in %s: %w", s.Build, err)
	}
	if index.Environment != s.Cluster.Environment {
		return nil, diag.WithHint(fmt.Errorf("the build in %s is for environment %s, the profile for %s", s.Build, index.Environment, s.Cluster.Environment), "name the right one with --build")
	}
	p := &Payload{}
	for name, into := range map[string]*[]byte{
		"cilium.tgz": &p.Cilium, "longhorn.tgz": &p.Longhorn, "longhorn-crds.yaml": &p.LonghornDefinitions,
		"gateway-api.yaml": &p.Gateway, "flux.yaml": &p.Flux, "images.txt": &p.Images,
	} {
		for _, f := range index.Files {
			if f.Name != payloadDir+name {
				continue
			}
			if *into, err = readVerified(root, f); err != nil {
				return nil, fmt.Errorf("build in %s: %w", s.Build, err)
			}
		}
	}
	return p, p.complete(s.Cluster)
}

// index reads the index, which must be signed by the key that is trusted.
func (s Settings) index(root *os.Root) (artifact.Index, error) {
	path := cmp.Or(s.Key, filepath.Join(s.configDir(), "slipway", "sign_ed25519.pub"))
	text, err := os.ReadFile(path)
	if err != nil {
		return artifact.Index{}, diag.WithHint(fmt.Errorf("reading the key that must have signed it: %w", err), "imagebuild made it with the first build; name it with --key")
	}
	key, err := artifact.ParseKey(text)
	if err != nil {
		return artifact.Index{}, fmt.Errorf("%s: %w", path, err)
	}
	data, err := readAll(root, artifact.IndexName, artifact.MaxIndexSize)
	if err != nil {
		return artifact.Index{}, err
	}
	signature, err := readAll(root, artifact.SignatureName, artifact.MaxIndexSize)
	if err != nil {
		return artifact.Index{}, err
	}
	if err := artifact.Verify(data, signature, key); err != nil {
		return artifact.Index{}, diag.WithHint(err, "name the public key of who built it with --key")
	}
	return artifact.Decode(data)
}

func readVerified(root *os.Root, f artifact.File) ([]byte, error) {
	data, err := readAll(root, f.Name, maxPayload)
	if err == nil && digest.Of(data) != f.Digest {
		err = diag.WithHint(fmt.Errorf("%s: %w", f.Name, digest.ErrMismatch), "it was changed after the build; build again")
	}
	return data, err
}

func readAll(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return data, err
}

// complete refuses a build that lacks what the profile wants.
func (p *Payload) complete(c cluster.Cluster) error {
	var lacking error
	switch {
	case len(p.Cilium) == 0:
		lacking = errors.New("the build has no chart of Cilium")
	case c.ServesGateways() && len(p.Gateway) == 0:
		lacking = errors.New("the build has no definitions of the Gateway API")
	case c.Longhorn.Enabled && len(p.Longhorn) == 0 && len(p.LonghornDefinitions) == 0:
		lacking = errors.New("the build has nothing of Longhorn")
	case c.Flux.URL != "" && len(p.Flux) == 0:
		lacking = errors.New("the build has no components of Flux")
	default:
		return nil
	}
	return diag.WithHint(lacking, "imagebuild pin says which inputs are not pinned, and why; pin them and build again")
}
