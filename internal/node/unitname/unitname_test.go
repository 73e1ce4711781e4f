package unitname

import "testing"

func TestOf(t *testing.T) {
	for path, want := range map[string]string{
		"/etc": "etc.mount", "/var/lib/dpkg": "var-lib-dpkg.mount", "/run/slipway/state": "run-slipway-state.mount",
		"/srv/a-b": `srv-a\x2db.mount`, "/.hidden": `\x2ehidden.mount`, "/a b": `a\x20b.mount`,
	} {
		if got := Of(path, "mount"); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
