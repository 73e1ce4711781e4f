package aptresolve_test

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve"
	"github.com/slipway/slipway/internal/pin"
)

func TestFindMirrors(t *testing.T) {
	for name, c := range map[string]struct {
		profile, env, envSecurity string
		debian, security, fail    string
	}{
		"profile before environment": {profile: "http://p.test/debian/", env: "http://e.test/debian", debian: "http://p.test/debian", security: "http://p.test/debian-security"},
		"environment":                {env: "https://e.test/x/debian", debian: "https://e.test/x/debian", security: "https://e.test/x/debian-security"},
		"security of its own":        {env: "http://e.test/a", envSecurity: "http://s.test/b/", debian: "http://e.test/a", security: "http://s.test/b"},
		"no sibling":                 {env: "http://e.test/a", fail: aptresolve.EnvSecurityMirror},
		"not a URL":                  {env: "e.test/debian", fail: aptresolve.EnvMirror},
		"not http":                   {env: "ftp://e.test/debian", fail: aptresolve.EnvMirror},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{aptresolve.EnvMirror: c.env, aptresolve.EnvSecurityMirror: c.envSecurity}
			m, err := aptresolve.FindMirrors(t.Context(), c.profile, func(k string) string { return env[k] })
			if c.fail != "" {
				if err == nil || !strings.Contains(diag.HintOf(err), c.fail) {
					t.Errorf("got %v, hint %q", err, diag.HintOf(err))
				}
				return
			}
			if err != nil || m.Debian != c.debian || m.Security != c.security {
				t.Errorf("got %+v, %v", m, err)
			}
			if m.Base(pin.ArchiveSecurity) != c.security || m.Base(pin.ArchiveDebian) != c.debian {
				t.Error("bases are mixed up")
			}
		})
	}
}
