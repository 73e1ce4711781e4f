package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
)

func TestUsable(t *testing.T) {
	for text, want := range map[string]bool{
		"nameserver 192.0.2.1\n":                            true,
		"search x\nnameserver 2001:db8::1\noptions ndots:2": true,
		"nameserver 127.0.0.53\n":                           false,
		"nameserver 192.0.2.1\nnameserver 127.0.0.1\n":      false,
		"nameserver somewhere\n":                            false,
		"# nameserver 192.0.2.1\n":                          false,
		"":                                                  false,
	} {
		if got := usable([]byte(text)); got != want {
			t.Errorf("%q is usable: %v", text, got)
		}
	}
}

func TestResolvConfOfTheUser(t *testing.T) {
	s := settings.Settings{DataDir: t.TempDir(), ResolvConf: "/etc/other"}
	if got, err := resolvConf(s); err != nil || got != "/etc/other" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(s.DataDir, "agent")); err == nil {
		t.Error("something was written")
	}
}

func TestListen(t *testing.T) {
	for _, server := range []string{"", "192.0.2.1:6443", "://x"} {
		if b, err := listen("127.0.0.1:0", server); err == nil {
			t.Errorf("%q was taken for a server: %v", server, b.Addr())
		}
	}
}
