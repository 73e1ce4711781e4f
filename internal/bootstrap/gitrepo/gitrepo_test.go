package gitrepo

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/slipway/slipway/internal/diag"
)

// bare makes a repository with one commit on main and returns its directory.
func bare(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	work, repo := filepath.Join(dir, "work"), filepath.Join(dir, "repo.git")
	script := `set -e
git init -q -b main "$1"; cd "$1"
mkdir -p clusters/lab; echo 'a: b' > clusters/lab/a.yaml; ln -s a.yaml clusters/lab/link.yaml; echo '#!/bin/sh' > run; chmod +x run
git add .; git -c user.name=t -c user.email=t@example.test commit -q -m one
git clone -q --bare . "$2"; git -C "$2" config http.uploadpack true`
	if out, err := exec.Command("sh", "-c", script, "sh", work, repo).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return repo
}

// serve serves the repository by git's own smart HTTP program, over TLS.
func serve(t *testing.T, repo, password string) (url, ca string) {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(repo), "GIT_HTTP_EXPORT_ALL=1"},
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, given, _ := r.BasicAuth(); password != "" && given != password {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/repo.git", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func check(t *testing.T, s Snapshot, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Files) != 2 || string(s.Files["clusters/lab/a.yaml"]) != "a: b\n" || s.Files["run"] == nil {
		t.Errorf("files %q", s.Files)
	}
	if !strings.HasPrefix(s.Revision, "main@sha1:") || len(s.Revision) != len("main@sha1:")+40 {
		t.Errorf("revision %q", s.Revision)
	}
}

func TestHTTPS(t *testing.T) {
	url, ca := serve(t, bare(t), "canary-password")
	access := Access{User: "flux", Password: "canary-password", CA: ca}
	s, err := Read(t.Context(), url, "main", access)
	check(t, s, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx         context.Context
		url, branch string
		change      func(*Access)
		want        error
	}{
		"no password":    {t.Context(), url, "main", func(a *Access) { a.Password = "" }, ErrDenied},
		"wrong password": {t.Context(), url, "main", func(a *Access) { a.Password = "canary-other" }, ErrDenied},
		"no such branch": {t.Context(), url, "other", func(*Access) {}, ErrNoBranch},
		"no such repo":   {t.Context(), strings.Replace(url, "repo", "none", 1), "main", func(*Access) {}, ErrUnreachable},
		"unknown CA":     {t.Context(), url, "main", func(a *Access) { a.CA = "" }, ErrUnreachable},
		"nobody there":   {t.Context(), "https://127.0.0.1:1/repo.git", "main", func(*Access) {}, ErrUnreachable},
		"given up":       {gone, url, "main", func(*Access) {}, ErrUnreachable},
	} {
		a := access
		c.change(&a)
		_, err := Read(c.ctx, c.url, c.branch, a)
		if !errors.Is(err, c.want) || diag.HintOf(err) == "" || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want %v with a hint", name, err, c.want)
		}
	}
}

func TestSSH(t *testing.T) {
	repo := bare(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	address, host := sshServer(t, signer.PublicKey())
	url := "ssh://git@" + address + repo
	known := knownhosts.Line([]string{address}, host)
	access := Access{Identity: string(pem.EncodeToMemory(block)), KnownHosts: known}
	s, err := Read(t.Context(), url, "main", access)
	check(t, s, err)
	for name, change := range map[string]func(*Access){
		"no key":         func(a *Access) { a.Identity = "" },
		"broken key":     func(a *Access) { a.Identity = "canary" },
		"no known hosts": func(a *Access) { a.KnownHosts = "" },
		"other host key": func(a *Access) { a.KnownHosts = knownhosts.Line([]string{address}, signer.PublicKey()) },
	} {
		a := access
		change(&a)
		if _, err := Read(t.Context(), url, "main", a); err == nil || diag.HintOf(err) == "" || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want an error with a hint", name, err)
		}
	}
}

// sshServer lets one key in and runs what git asks for.
func sshServer(t *testing.T, allowed ssh.PublicKey) (address string, host ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(allowed.Marshal()) {
			return nil, errors.New("not you")
		}
		return nil, nil
	}}
	config.AddHostKey(signer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveSSH(conn, config)
		}
	}()
	return l.Addr().String(), signer.PublicKey()
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig) {
	conn.SetDeadline(time.Now().Add(time.Minute))
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for nc := range channels {
		ch, reqs, err := nc.Accept()
		if err != nil {
			return
		}
		for req := range reqs {
			if req.Type != "exec" {
				req.Reply(false, nil)
				continue
			}
			req.Reply(true, nil)
			cmd := exec.Command("sh", "-c", string(req.Payload[4:]))
			cmd.Stdin, cmd.Stdout, cmd.Stderr = ch, ch, os.Stderr
			status := byte(0)
			if err := cmd.Run(); err != nil {
				status = 1
			}
			ch.SendRequest("exit-status", false, []byte{0, 0, 0, status})
			ch.Close()
		}
	}
}

func TestUser(t *testing.T) {
	for url, want := range map[string]string{"ssh://forgejo@git.example/x": "forgejo", "git@git.example:x/y.git": "git", "ssh://git.example/x": "git"} {
		if got := user(url); got != want {
			t.Error(fmt.Sprintf("%s: %q, want %q", url, got, want))
		}
	}
}

func TestNewKey(t *testing.T) {
	private, err := NewKey("slipway-lab")
	if err != nil {
		t.Fatal(err)
	}
	public, err := PublicKey(private, "slipway-lab")
	if err != nil || !strings.HasPrefix(public, "ssh-ed25519 ") || !strings.HasSuffix(public, " slipway-lab") {
		t.Errorf("%q, %v", public, err)
	}
	if _, err := PublicKey("canary", ""); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("broken key: %v", err)
	}
}
