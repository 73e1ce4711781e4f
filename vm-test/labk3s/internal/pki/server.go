package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Server is what a server's certificates depend on.
type Server struct {
	Names    []string // of the API: DNS names and addresses
	NodeName string
	NodeIP   string
	APIURL   string // of the API server, for the parts beside it
	Encrypt  bool   // Secrets in etcd
}

// Ensure makes what is not there of the shared files, and signs the rest anew.
func (f Files) Ensure(s Server, now time.Time) error {
	if err := f.ensureKey(f.ServiceKey()); err != nil {
		return err
	}
	if s.Encrypt {
		if err := f.ensureEncryption(); err != nil {
			return err
		}
	}
	for _, set := range f.sets(s) {
		a, err := ensureAuthority(set.ca, set.name, now)
		if err != nil {
			return err
		}
		for _, leaf := range set.leaves {
			if err := a.issue(leaf.pair, leaf.subject, now); err != nil {
				return err
			}
		}
	}
	return f.writeKubeconfigs(s.APIURL)
}

type leaf struct {
	pair    Pair
	subject Subject
}

// set is an authority and all that it signs.
type set struct {
	ca     Pair
	name   string
	leaves []leaf
}

const masters = "system:masters"

func (f Files) sets(s Server) []set {
	local := []string{"localhost", "127.0.0.1", "::1", s.NodeName, s.NodeIP}
	return []set{
		{f.ClientCA(), "k3s-client", []leaf{
			{f.Admin(), Subject{Name: "system:admin", Groups: []string{masters}, Uses: Client}},
			{f.Supervisor(), Subject{Name: "system:k3s-supervisor", Groups: []string{masters}, Uses: Client}},
			{f.Controller(), Subject{Name: "system:kube-controller-manager", Uses: Client}},
			{f.Scheduler(), Subject{Name: "system:kube-scheduler", Uses: Client}},
			{f.APIClient(), Subject{Name: "system:apiserver", Groups: []string{masters}, Uses: Client}},
		}},
		{f.ServerCA(), "k3s-server", []leaf{
			{f.APIServing(), Subject{Name: "kube-apiserver", Names: s.Names, Uses: Serving}},
		}},
		{f.RequestHeaderCA(), "k3s-request-header", []leaf{
			{f.AuthProxy(), Subject{Name: "system:auth-proxy", Uses: Client}},
		}},
		{f.EtcdServerCA(), "etcd-server", []leaf{
			{f.EtcdServing(), Subject{Name: "etcd-server", Names: local, Uses: Both}},
			{f.EtcdClient(), Subject{Name: "etcd-client", Uses: Client}},
		}},
		{f.EtcdPeerCA(), "etcd-peer", []leaf{
			{f.EtcdPeer(), Subject{Name: "etcd-peer", Names: local, Uses: Both}},
		}},
	}
}

func (f Files) writeKubeconfigs(url string) error {
	for part, pair := range map[string]Pair{
		"admin": f.Admin(), "supervisor": f.Supervisor(), "controller": f.Controller(), "scheduler": f.Scheduler(),
	} {
		if err := WriteKubeconfig(f.Kubeconfig(part), url, f.ServerCA().Cert, pair); err != nil {
			return err
		}
	}
	return nil
}

// WriteKubeconfig writes a kubeconfig that names its certificates by path.
func WriteKubeconfig(name, url, ca string, client Pair) error {
	return writeFile(name, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: default
clusters:
- name: local
  cluster:
    server: %s
    certificate-authority: %s
users:
- name: user
  user:
    client-certificate: %s
    client-key: %s
contexts:
- name: default
  context:
    cluster: local
    user: user
`, url, ca, client.Cert, client.Key))
}

// AdminKubeconfig is the kubeconfig for people: it holds what the others point to.
func (f Files) AdminKubeconfig(url string) ([]byte, error) {
	var text []any
	for _, name := range []string{f.ServerCA().Cert, f.Admin().Cert, f.Admin().Key} {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		text = append(text, base64.StdEncoding.EncodeToString(data))
	}
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: default
clusters:
- name: default
  cluster:
    certificate-authority-data: %s
    server: `+url+`
users:
- name: default
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: default
  context:
    cluster: default
    user: default
`, text...), nil
}

func (f Files) ensureKey(name string) error {
	if _, err := os.Stat(name); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(name, key)
}

// ensureEncryption makes the key that encrypts Secrets. The provider identity lets
// those be read that were written before.
func (f Files) ensureEncryption() error {
	if _, err := os.Stat(f.Encryption()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key := make([]byte, 32)
	rand.Read(key) // it cannot fail
	type object map[string]any
	doc, err := json.Marshal(object{
		"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1",
		"resources": []object{{
			"resources": []string{"secrets"},
			"providers": []object{
				{"aescbc": object{"keys": []object{{"name": "aescbckey", "secret": key}}}},
				{"identity": object{}},
			},
		}},
	})
	if err != nil {
		return err
	}
	return writeFile(f.Encryption(), doc)
}
