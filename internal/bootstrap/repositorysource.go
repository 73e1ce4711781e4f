package bootstrap

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/slipway/slipway/internal/bootstrap/flux"
	"github.com/slipway/slipway/internal/bootstrap/gitops"
	"github.com/slipway/slipway/internal/bootstrap/gitrepo"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/fluxsync"
	"github.com/slipway/slipway/internal/secrets"
)

// fetched is the GitOps repository as it was read, once a run.
type fetched struct {
	tree     *gitops.Tree
	revision string // empty when it was read from a directory
}

// reader reads the repository when it is first asked for, and not again: gate and
// hand-over must speak of the same commit.
type reader struct {
	settings Settings
	secrets  *secrets.File
	ids      secrets.Identities

	once sync.Once
	got  fetched
	err  error
}

func (r *reader) read(ctx context.Context) (fetched, error) {
	r.once.Do(func() { r.got, r.err = r.fetch(ctx) })
	return r.got, r.err
}

func (r *reader) fetch(ctx context.Context) (fetched, error) {
	files, revision, err := r.files(ctx)
	if err != nil {
		return fetched{}, err
	}
	tree, err := gitops.Build(files, gitops.Options{
		Path: r.settings.Cluster.Flux.Path, Name: fluxsync.Name, Encrypted: secrets.Encrypted,
		Open: func(data []byte) ([]byte, error) { return secrets.Decrypt(data, r.ids) },
	})
	if err != nil {
		return fetched{}, exit.With(exit.Refused, fmt.Errorf("the GitOps repository: %w", err))
	}
	return fetched{tree, revision}, nil
}

func (r *reader) files(ctx context.Context) (gitops.Files, string, error) {
	f := r.settings.Cluster.Flux
	if dir := r.settings.Repo; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, "", exit.With(exit.Usage, diag.WithHint(fmt.Errorf("%s is no directory", dir), "--repo takes a checked-out GitOps repository"))
		}
		files, err := gitops.Read(os.DirFS(dir))
		return files, "", err
	}
	if f.URL == "" {
		return nil, "", exit.With(exit.Usage, diag.WithHint(fmt.Errorf("%s names no GitOps repository", r.settings.Profile), "set flux.url and flux.path in the profile, or give --repo DIR"))
	}
	s, err := gitrepo.Read(ctx, f.URL, f.Branch, r.access())
	return s.Files, s.Revision, err
}

// access is what the secrets hold for the forge.
func (r *reader) access() gitrepo.Access {
	get := func(name string) string {
		if r.secrets == nil {
			return ""
		}
		value, _ := r.secrets.Get(name)
		return value
	}
	return gitrepo.Access{
		Identity: get(secrets.GitIdentity), KnownHosts: get(secrets.GitKnownHosts),
		User: get(secrets.GitUser), Password: get(secrets.GitToken), CA: get(secrets.GitCA),
	}
}

// prove reads the repository and opens everything in it that is encrypted.
func (r *reader) prove(ctx context.Context) (flux.Proof, error) {
	got, err := r.read(ctx)
	if err != nil {
		return flux.Proof{}, err
	}
	p := flux.Proof{Revision: got.revision, Undecrypted: got.tree.Undecrypted()}
	for _, u := range got.tree.Units {
		p.Opened = append(p.Opened, u.Encrypted...)
	}
	slices.Sort(p.Opened)
	p.Opened = slices.Compact(p.Opened)
	return p, nil
}
