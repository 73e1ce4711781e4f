package agent

import (
	"bufio"
	"bytes"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway/slipway/vm-test/labk3s/internal/joining"
	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
)

// files are what an agent keeps.
type files struct {
	clientCA, serverCA string
	client, serving    pki.Pair
	kubeconfig         string
}

func filesOf(s settings.Settings) files {
	pair := func(name string) pki.Pair {
		return pki.Pair{Cert: s.AgentDir(name + ".crt"), Key: s.AgentDir(name + ".key")}
	}
	return files{
		clientCA: s.AgentDir("client-ca.crt"), serverCA: s.AgentDir("server-ca.crt"),
		client: pair("client-kubelet"), serving: pair("serving-kubelet"),
		kubeconfig: s.AgentDir("kubelet.kubeconfig"),
	}
}

// download gets the authorities.
func (f files) download(ctx context.Context, server *joining.Server) error {
	for _, name := range []string{f.clientCA, f.serverCA} {
		text, err := server.Get(ctx, "/v1-k3s/"+filepath.Base(name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (f files) writeKubeconfig(url string) error {
	return pki.WriteKubeconfig(f.kubeconfig, url, f.serverCA, f.client)
}

// resolvConf is the resolver configuration of pods. The host's is not it when its
// server is on the host's loopback, which is another one in a pod, or when there is
// none; then one is made up, as k3s does.
func resolvConf(s settings.Settings) (string, error) {
	if s.ResolvConf != "" {
		return s.ResolvConf, nil
	}
	for _, name := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		if text, err := os.ReadFile(name); err == nil && usable(text) {
			return name, nil
		}
	}
	name := s.AgentDir("etc", "resolv.conf")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", err
	}
	return name, os.WriteFile(name, []byte("nameserver 8.8.8.8\n"), 0o644)
}

func usable(text []byte) bool {
	found := false
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		ip, err := netip.ParseAddr(fields[1])
		if err != nil || !ip.IsGlobalUnicast() {
			return false
		}
		found = true
	}
	return found
}
