package aptresolve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/pin"
)

// root is a private apt world: own sources, own indexes, no installed packages.
type root struct {
	req Request
	dir string
}

func newRoot(req Request) (*root, error) {
	dir, err := os.MkdirTemp("", "slipway-apt-")
	if err != nil {
		return nil, fmt.Errorf("making apt's private root: %w", err)
	}
	r := &root{req: req, dir: dir}
	if err := r.fill(); err != nil {
		r.remove()
		return nil, fmt.Errorf("making apt's private root: %w", err)
	}
	return r, nil
}

func (r *root) remove() { os.RemoveAll(r.dir) } // nothing to be done about an error

func (r *root) path(name string) string { return filepath.Join(r.dir, name) }

func (r *root) fill() error {
	for _, d := range []string{"etc/apt.conf.d", "etc/preferences.d", "etc/sources.list.d", "etc/trusted.gpg.d", "state/lists/partial", "cache/archives/partial", "log"} {
		if err := os.MkdirAll(r.path(d), 0o755); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{"status": "", "apt.conf": r.config(), "etc/sources.list": r.sources()} {
		if err := os.WriteFile(r.path(name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// config is read through APT_CONFIG, before and instead of /etc/apt. Everything
// that has a place on the host is pointed into the root.
func (r *root) config() string {
	var b strings.Builder
	for _, kv := range [][2]string{
		{"Dir::State", r.path("state")},
		{"Dir::State::status", r.path("status")},
		{"Dir::Cache", r.path("cache")},
		{"Dir::Etc", r.path("etc")},
		{"Dir::Log", r.path("log")},
		{"APT::Architecture", Arch},
		{"APT::Architectures::", Arch},
		{"APT::Install-Recommends", "false"},
		{"APT::Install-Suggests", "false"},
		{"APT::Update::Error-Mode", "any"}, // a suite that cannot be fetched is an error, not a warning
		{"APT::Sandbox::User", ""},         // _apt may not enter a private directory
		{"APT::Get::AllowUnauthenticated", "false"},
		{"Acquire::Languages", "none"},
		{"Acquire::Retries", "2"},
		{"Acquire::http::Timeout", "30"},
		{"Acquire::https::Timeout", "30"},
		{"Acquire::AllowInsecureRepositories", "false"},
		{"Acquire::AllowDowngradeToInsecureRepositories", "false"},
		{"Acquire::GzipIndexes", "false"},
	} {
		fmt.Fprintf(&b, "%s %q;\n", kv[0], kv[1])
	}
	return b.String()
}

// sources lists the suite, its updates and its security updates; the order
// makes no difference to apt.
func (r *root) sources() string {
	var b strings.Builder
	for _, s := range r.suites() {
		fmt.Fprintf(&b, "deb [arch=%s signed-by=%s] %s %s %s\n", Arch, r.req.Keyring, r.req.Mirrors.Base(s.Archive), s.Suite, strings.Join(r.req.Components, " "))
	}
	return b.String()
}

func (r *root) suites() []pin.Release {
	s := []pin.Release{{Archive: pin.ArchiveDebian, Suite: r.req.Suite}}
	if r.req.SkipUpdates {
		return s
	}
	return append(s,
		pin.Release{Archive: pin.ArchiveDebian, Suite: r.req.Suite + "-updates"},
		pin.Release{Archive: pin.ArchiveSecurity, Suite: r.req.Suite + "-security"})
}

// run starts one of apt's programs in the root. said is what it wrote to
// standard error, for telling one failure from another.
func (r *root) run(ctx context.Context, name string, args ...string) (out []byte, said string, err error) {
	var stdout, stderr bytes.Buffer
	err = hosttool.Run(ctx, hosttool.Cmd{
		Name:   name,
		Args:   args,
		Env:    slices.Concat(r.req.Env, []string{"APT_CONFIG=" + r.path("apt.conf")}),
		Stdout: &stdout,
		Stderr: &stderr,
	})
	return stdout.Bytes(), stderr.String(), err
}

func (r *root) update(ctx context.Context) error {
	_, said, err := r.run(ctx, "apt-get", "-q", "update")
	if ctx.Err() != nil || errors.Is(err, hosttool.ErrMissing) {
		return err
	}
	if err == nil && !noComponent.MatchString(said) { // only a warning to apt
		return nil
	}
	return r.explainUpdate(said, err)
}
