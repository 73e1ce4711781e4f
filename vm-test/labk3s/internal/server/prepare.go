package server

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/slipway/slipway/vm-test/labk3s/internal/kube"
	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
	"github.com/slipway/slipway/vm-test/labk3s/internal/token"
)

// prepare writes everything that a server has on its disk before it starts.
func (s *server) prepare() error {
	err := s.files.Ensure(pki.Server{
		Names: s.names(), NodeName: s.settings.NodeName, NodeIP: s.settings.NodeIP,
		APIURL: kube.LocalAPI, Encrypt: s.settings.SecretsEncryption,
	}, time.Now())
	if err != nil {
		return err
	}
	passwords, err := s.passwords()
	if err != nil {
		return err
	}
	return errors.Join(s.writeTokens(passwords), s.writeKubeconfig())
}

// names are what the API may be called.
func (s *server) names() []string {
	domain := s.settings.ClusterDomain
	names := append([]string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + domain,
		"localhost", "127.0.0.1", "::1", s.settings.ServiceIP(), s.settings.NodeName, s.settings.NodeIP, s.settings.AdvertiseAddress,
	}, s.settings.SANs...)
	slices.Sort(names)
	return slices.Compact(names)
}

// passwords are those of the cluster. A new one takes the token that it was told, or
// makes one up; a joining server has got the file and keeps it.
func (s *server) passwords() (token.Passwords, error) {
	name := s.files.Passwords()
	p, err := token.ReadPasswords(name)
	if err != nil {
		return nil, err
	}
	if len(p) > 0 {
		return p, nil
	}
	if p[token.Server], err = secretOf(s.settings.Token); err != nil {
		return nil, err
	}
	p[token.Node] = p[token.Server]
	if s.settings.AgentToken != "" {
		if p[token.Node], err = secretOf(s.settings.AgentToken); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	return p, p.Write(name)
}

// secretOf is the password in a token, or a new one.
func secretOf(s string) (string, error) {
	if s == "" {
		b := make([]byte, 16)
		rand.Read(b) // it cannot fail
		return hex.EncodeToString(b), nil
	}
	t, err := token.Parse(s)
	return t.Password, err
}

// writeTokens writes the full tokens: token for servers, agent-token for agents when
// theirs is another, and node-token, which has been the name of the first.
func (s *server) writeTokens(p token.Passwords) error {
	ca, err := os.ReadFile(s.files.ServerCA().Cert)
	if err != nil {
		return err
	}
	main, agents := s.settings.ServerDir("token"), s.settings.ServerDir("agent-token")
	if err := os.WriteFile(main, []byte(token.Full(ca, token.Server, p[token.Server])+"\n"), 0o600); err != nil {
		return err
	}
	if p[token.Node] != p[token.Server] {
		if err := os.WriteFile(agents, []byte(token.Full(ca, token.Node, p[token.Node])+"\n"), 0o600); err != nil {
			return err
		}
	}
	slog.Info("Server node token is available at " + main)
	return relink(main, s.settings.ServerDir("node-token"))
}

func relink(to, link string) error {
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(to, link)
}

// nodeToken is the token with which this server's own agent comes to it.
func (s *server) nodeToken() string {
	for _, name := range []string{"agent-token", "token"} {
		text, err := os.ReadFile(s.settings.ServerDir(name))
		if err == nil {
			return string(text)
		}
	}
	return s.settings.Token
}

// writeKubeconfig writes the kubeconfig for people.
func (s *server) writeKubeconfig() error {
	host := s.settings.BindAddress
	if host == "" {
		host = "127.0.0.1"
	}
	text, err := s.files.AdminKubeconfig("https://" + net.JoinHostPort(host, strconv.Itoa(s.settings.Port)))
	if err != nil {
		return err
	}
	mode, err := strconv.ParseUint(s.settings.KubeconfigMode, 8, 32)
	if err != nil {
		return fmt.Errorf("write-kubeconfig-mode: %w", err)
	}
	name := s.settings.Kubeconfig
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(name, os.FileMode(mode)); err != nil {
		return err
	}
	return s.chgrp(name)
}

func (s *server) chgrp(name string) error {
	if s.settings.KubeconfigGroup == "" {
		return nil
	}
	g, err := user.LookupGroup(s.settings.KubeconfigGroup)
	if err != nil {
		return fmt.Errorf("write-kubeconfig-group: %w", err)
	}
	id, err := strconv.Atoi(g.Gid)
	if err != nil {
		return err
	}
	return os.Chown(name, -1, id)
}
