package material

import (
	"context"
	"errors"
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

// Fetched is the GitOps repository as it was read, once a run.
type Fetched struct {
	Tree     *gitops.Tree
	Revision string // empty when it was read from a directory
}

// Reader reads the repository when it is first asked for, and not again: gate and
// hand-over must speak of the same commit.
type Reader struct {
	settings Settings
	secrets  *secrets.File
	ids      secrets.Identities

	once sync.Once
	got  Fetched
	err  error
}

// Read is the repository; it is fetched once.
func (r *Reader) Read(ctx context.Context) (Fetched, error) {
	r.once.Do(func() { r.got, r.err = r.fetch(ctx) })
	return r.got, r.err
}

func (r *Reader) fetch(ctx context.Context) (Fetched, error) {
	files, revision, err := r.files(ctx)
	if err != nil {
		return Fetched{}, err
	}
	tree, err := gitops.Build(files, gitops.Options{
		Path: r.settings.Cluster.Flux.Path, Name: fluxsync.Name, Encrypted: secrets.Encrypted,
		Open: func(data []byte) ([]byte, error) { return secrets.Decrypt(data, r.ids) },
	})
	if err != nil {
		return Fetched{}, exit.With(exit.Refused, fmt.Errorf("the GitOps repository: %w", err))
	}
	return Fetched{tree, revision}, nil
}

func (r *Reader) files(ctx context.Context) (gitops.Files, string, error) {
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

// Token is what nodes join the cluster with.
func (r *Reader) Token() (string, error) {
	if r.secrets == nil {
		return "", errors.New("the secrets are not open")
	}
	return r.secrets.Need(secrets.Token)
}

// access is what the secrets hold for the forge.
func (r *Reader) access() gitrepo.Access {
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

// Prove reads the repository and opens everything in it that is encrypted.
func (r *Reader) Prove(ctx context.Context) (flux.Proof, error) {
	got, err := r.Read(ctx)
	if err != nil {
		return flux.Proof{}, err
	}
	p := flux.Proof{Revision: got.Revision, Undecrypted: got.Tree.Undecrypted()}
	for _, u := range got.Tree.Units {
		p.Opened = append(p.Opened, u.Encrypted...)
	}
	slices.Sort(p.Opened)
	p.Opened = slices.Compact(p.Opened)
	return p, nil
}

// Revision is the commit that the hand-over is about.
func (r *Reader) Revision(ctx context.Context) (string, error) {
	got, err := r.Read(ctx)
	return got.Revision, err
}

// Private says whether the repository is read with a Secret.
func (r *Reader) Private() bool {
	a := r.access()
	return a.Identity != "" || a.Password != "" || a.CA != ""
}

// Secrets are the Secrets that Flux reads: the age key that opens the repository, and
// what the forge asks for.
func (r *Reader) Secrets() []map[string]any {
	out := []map[string]any{fluxsync.Secret(fluxsync.AgeSecret, map[string][]byte{fluxsync.AgeKey: r.ids.Text()})}
	if !r.Private() {
		return out
	}
	a := r.access()
	return append(out, fluxsync.Secret(fluxsync.Name, map[string][]byte{
		fluxsync.KeyIdentity: []byte(a.Identity), fluxsync.KeyKnownHosts: []byte(a.KnownHosts),
		fluxsync.KeyUsername: []byte(a.User), fluxsync.KeyPassword: []byte(a.Password), fluxsync.KeyCA: []byte(a.CA),
	}))
}

// Reader is a reader of the repository. A checkout without secrets needs none.
func (s Settings) Reader(redactor *secrets.Redactor) (*Reader, error) {
	f, ids, err := s.Unseal(redactor)
	if err != nil && s.Repo == "" {
		return nil, err
	}
	return &Reader{settings: s, secrets: f, ids: ids}, nil
}

// Refusal is an error with all findings, for the exit code, or nil.
func (v Verdicts) Refusal() error { return exit.With(exit.Refused, v.Err()) }
