// Package gitrepo reads a GitOps repository from where Flux will read it, with the
// credentials that Flux will have, into memory: what cannot be read here cannot be
// read there. It is the owner of go-git.
package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"github.com/go-git/go-git/v5/storage/memory"
	cryptossh "golang.org/x/crypto/ssh"

	"github.com/slipway/slipway/internal/diag"
)

// Access is how to log in: by key over SSH, by password over HTTPS, or not at all.
type Access struct {
	Identity   string // private SSH key, PEM
	KnownHosts string // lines of a known_hosts file; SSH needs them
	User       string // for HTTPS
	Password   string
	CA         string // certificates that HTTPS trusts besides the system's, PEM
}

// Snapshot is the content of a branch.
type Snapshot struct {
	Files    map[string][]byte // path relative to the root -> content; symbolic links are left out
	Revision string            // branch@sha1:commit, as Flux writes it
}

// Errors of Read that a caller may branch on.
var (
	ErrUnreachable = errors.New("the git repository cannot be reached")
	ErrDenied      = errors.New("the git repository does not let us in")
	ErrNoBranch    = errors.New("the git repository has no such branch")
)

// Read fetches the newest commit of a branch.
func Read(ctx context.Context, url, branch string, a Access) (Snapshot, error) {
	auth, err := a.method(url)
	if err != nil {
		return Snapshot{}, err
	}
	repo, err := git.CloneContext(ctx, memory.NewStorage(), nil, &git.CloneOptions{
		URL: url, Auth: auth, ReferenceName: plumbing.NewBranchReferenceName(branch),
		SingleBranch: true, Depth: 1, Tags: git.NoTags, CABundle: []byte(a.CA),
	})
	if err != nil {
		return Snapshot{}, explain(ctx, url, branch, err)
	}
	return snapshot(repo, branch)
}

func snapshot(repo *git.Repository, branch string) (Snapshot, error) {
	head, err := repo.Head()
	if err != nil {
		return Snapshot{}, err
	}
	commit, err := repo.CommitObject(head.Hash())
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Files: map[string][]byte{}, Revision: fmt.Sprintf("%s@sha1:%s", branch, head.Hash())}
	files, err := commit.Files()
	if err != nil {
		return Snapshot{}, err
	}
	return s, files.ForEach(func(f *object.File) error {
		if !f.Mode.IsRegular() && f.Mode.IsFile() && f.Mode.String() != "0100755" {
			return nil
		}
		r, err := f.Reader()
		if err != nil {
			return err
		}
		defer r.Close()
		s.Files[f.Name], err = io.ReadAll(r)
		return err
	})
}

// method is go-git's form of the access.
func (a Access) method(url string) (transport.AuthMethod, error) {
	if strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://") {
		if a.Password == "" {
			return nil, nil
		}
		return &http.BasicAuth{Username: a.User, Password: a.Password}, nil
	}
	if a.Identity == "" {
		return nil, diag.WithHint(errors.New("the git repository is read over SSH, and there is no key for it"), "bootstrap init-secrets makes one and prints what to give to the forge as deploy key")
	}
	keys, err := ssh.NewPublicKeys(user(url), []byte(a.Identity), "")
	if err != nil {
		return nil, diag.WithHint(errors.New("the SSH key for the git repository cannot be read"), "it must be a private key without a passphrase")
	}
	keys.HostKeyCallback, err = a.hosts()
	return keys, err
}

// hosts trusts the known hosts and nobody else. The library reads them from a file.
func (a Access) hosts() (callback cryptossh.HostKeyCallback, err error) {
	if a.KnownHosts == "" {
		return nil, diag.WithHint(errors.New("the git repository is read over SSH, and its host key is not known"),
			"put the line of ssh-keyscan, compared with what the forge publishes, into the secrets as gitKnownHosts")
	}
	f, err := os.CreateTemp("", "slipway-known-hosts-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.WriteString(a.KnownHosts); err != nil {
		return nil, err
	}
	return ssh.NewKnownHostsCallback(f.Name())
}

// user is the login of an SSH address.
func user(url string) string {
	rest := strings.TrimPrefix(url, "ssh://")
	if name, _, ok := strings.Cut(rest, "@"); ok {
		return name
	}
	return "git"
}

func explain(ctx context.Context, url, branch string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed), strings.Contains(err.Error(), "unable to authenticate"):
		return diag.WithHint(fmt.Errorf("%w: %s", ErrDenied, url), "give the forge the deploy key that bootstrap init-secrets printed, or mend gitUser and gitToken in the secrets")
	case errors.As(err, new(git.NoMatchingRefSpecError)), errors.Is(err, plumbing.ErrReferenceNotFound), errors.Is(err, transport.ErrEmptyRemoteRepository):
		return diag.WithHint(fmt.Errorf("%w: %s in %s", ErrNoBranch, branch, url), "push the branch, or mend flux.branch in the profile")
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return diag.WithHint(fmt.Errorf("%w: the server knows no %s", ErrUnreachable, url), "mend flux.url in the profile; some forges say this also to those they do not let in")
	case strings.Contains(err.Error(), "knownhosts: key"):
		return diag.WithHint(fmt.Errorf("%w: the host key of %s is not the one that is known", ErrUnreachable, url), "somebody may stand in between; compare with what the forge publishes before gitKnownHosts is changed")
	}
	return diag.WithHint(fmt.Errorf("%w: %s: %w", ErrUnreachable, url, err), "Flux must reach it from the nodes, and bootstrap from here; nothing was changed")
}
