package material

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	bootgitops "github.com/slipway/slipway/internal/bootstrap/gitops"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/gitops"
	"github.com/slipway/slipway/internal/secrets"
)

// Starter is what GitOpsInit wrote.
type Starter struct {
	Dir     string   `json:"dir"`
	Written []string `json:"written"`
	Kept    int      `json:"kept"` // files that were there and stayed as they are
	Sealed  []string `json:"sealed"`
}

// GitOpsInit writes the repository that the cluster starts from into dir: what is
// missing only. Encrypted files are for the recipients of the environment's secrets.
// The result is in parity with the profile; that is checked before this returns.
func GitOpsInit(ctx context.Context, s Settings, p *Payload, dir string) (Starter, error) {
	if s.Cluster.Flux.Path == "" {
		return Starter{}, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("%s names no directory for the cluster", s.Profile), "set flux.path in the profile, such as clusters/"+s.Cluster.Environment))
	}
	var redactor secrets.Redactor
	sealed, ids, err := s.Unseal(&redactor)
	if err != nil {
		return Starter{}, err
	}
	existing, err := readDir(dir)
	if err != nil {
		return Starter{}, err
	}
	in, err := p.starter(s, sealed.Recipients, existing)
	if err != nil {
		return Starter{}, err
	}
	files, err := gitops.Starter(in)
	if err != nil {
		return Starter{}, err
	}
	out := Starter{Dir: dir, Kept: len(existing)}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if gitops.Secret(name) {
			if files[name], err = secrets.Encrypt(files[name], sealed.Recipients, secrets.ObjectValues, s.Now()); err != nil {
				return out, fmt.Errorf("%s: %w", name, err)
			}
			out.Sealed = append(out.Sealed, name)
		}
	}
	// Judged in memory first: a repository that Flux could not adopt is not written.
	if err := p.accept(s, ids, merged(existing, files)); err != nil {
		return out, fmt.Errorf("the repository would not be in parity: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := context.Cause(ctx); err != nil {
			return out, err
		}
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), files[name]); err != nil {
			return out, err
		}
		out.Written = append(out.Written, name)
	}
	return out, nil
}

func readDir(dir string) (bootgitops.Files, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return bootgitops.Files{}, nil
	}
	return bootgitops.Read(os.DirFS(dir))
}

func merged(a, b map[string][]byte) bootgitops.Files {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := renameio.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
