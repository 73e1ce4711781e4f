package aptresolve

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/pin"
)

// The variables that say where the archives are when the profile does not.
const (
	EnvMirror         = "SLIPWAY_DEBIAN_MIRROR"
	EnvSecurityMirror = "SLIPWAY_DEBIAN_SECURITY_MIRROR"
)

// Mirrors are the base URLs of the archives, without a slash at the end.
type Mirrors struct{ Debian, Security string }

// Base is the base URL of an archive by the name that locks use.
func (m Mirrors) Base(archive string) string {
	if archive == pin.ArchiveSecurity {
		return m.Security
	}
	return m.Debian
}

// FindMirrors decides where the archives are: the profile's mirror, else the
// environment (getenv is os.Getenv), else what the build host's own apt uses
// for Debian. The security archive is its own variable, else the sibling
// directory of the archive, else what the host's apt uses.
func FindMirrors(ctx context.Context, profile string, getenv func(string) string) (Mirrors, error) {
	m := Mirrors{Debian: profile, Security: getenv(EnvSecurityMirror)}
	if m.Debian == "" {
		m.Debian = getenv(EnvMirror)
	}
	if m.Debian == "" {
		host, err := hostMirrors(ctx)
		if err != nil {
			return m, err
		}
		m.Debian = host.Debian
		if m.Security == "" {
			m.Security = host.Security
		}
	}
	m.Debian = strings.TrimRight(m.Debian, "/")
	m.Security = strings.TrimRight(m.Security, "/")
	if m.Security == "" {
		base, ok := strings.CutSuffix(m.Debian, "/debian")
		if !ok {
			return m, diag.WithHint(fmt.Errorf("no security archive is known beside %s", m.Debian), "set "+EnvSecurityMirror+" to its base URL")
		}
		m.Security = base + "/debian-security"
	}
	return m, m.check()
}

func (m Mirrors) check() error {
	for _, base := range []string{m.Debian, m.Security} {
		u, err := url.Parse(base)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return diag.WithHint(fmt.Errorf("not an http or https URL of a Debian archive: %q", base), "see debian.mirror in the profile, "+EnvMirror+" and "+EnvSecurityMirror)
		}
	}
	return nil
}

// hostMirrors reads the host's own sources, through apt, whatever their format.
// Origin and label are known only when the host's indexes are there; the names
// of the directories stand in for them on a host whose lists were cleaned.
func hostMirrors(ctx context.Context) (Mirrors, error) {
	out, err := hosttool.Output(ctx, hosttool.Cmd{Name: "apt-get", Args: []string{
		"indextargets", "--no-release-info", "--format", "$(REPO_URI)", "Created-By: Packages"}})
	if err != nil {
		return Mirrors{}, fmt.Errorf("asking apt for its archives: %w", err)
	}
	var m Mirrors
	for line := range strings.Lines(string(out)) {
		uri := strings.TrimRight(strings.TrimSpace(line), "/")
		if !strings.HasPrefix(uri, "http") {
			continue // a CD-ROM or a mirror list serves apt only
		}
		switch {
		case m.Debian == "" && path.Base(uri) == "debian":
			m.Debian = uri
		case m.Security == "" && path.Base(uri) == "debian-security":
			m.Security = uri
		}
	}
	if m.Debian == "" {
		return m, diag.WithHint(errors.New("no Debian archive is known: the profile names none, and this machine's apt uses none"),
			"set debian.mirror in the profile, or "+EnvMirror+", to the base URL of a Debian archive")
	}
	return m, nil
}
