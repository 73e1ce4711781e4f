// Package pki makes the certificates and keys of a server, in the files where k3s
// keeps them (server/tls and server/cred). What all servers share comes from the
// first of them; everything else is signed anew at each start.
package pki

import "path/filepath"

// Files are the paths of a server's certificates, keys and credentials.
type Files struct{ dir string }

// At are the files below a server's directory.
func At(serverDir string) Files { return Files{dir: serverDir} }

func (f Files) tls(name string) string  { return filepath.Join(f.dir, "tls", name) }
func (f Files) cred(name string) string { return filepath.Join(f.dir, "cred", name) }

// Pair is a certificate and its key, both files.
type Pair struct{ Cert, Key string }

func (f Files) pair(name string) Pair { return Pair{f.tls(name + ".crt"), f.tls(name + ".key")} }

// The authorities.
func (f Files) ClientCA() Pair        { return f.pair("client-ca") }
func (f Files) ServerCA() Pair        { return f.pair("server-ca") }
func (f Files) RequestHeaderCA() Pair { return f.pair("request-header-ca") }
func (f Files) EtcdServerCA() Pair    { return f.pair("etcd/server-ca") }
func (f Files) EtcdPeerCA() Pair      { return f.pair("etcd/peer-ca") }

// The pairs that they sign.
func (f Files) Admin() Pair        { return f.pair("client-admin") }
func (f Files) Supervisor() Pair   { return f.pair("client-supervisor") }
func (f Files) Controller() Pair   { return f.pair("client-controller") }
func (f Files) Scheduler() Pair    { return f.pair("client-scheduler") }
func (f Files) APIClient() Pair    { return f.pair("client-kube-apiserver") }
func (f Files) APIServing() Pair   { return f.pair("serving-kube-apiserver") }
func (f Files) AuthProxy() Pair    { return f.pair("client-auth-proxy") }
func (f Files) EtcdServing() Pair  { return f.pair("etcd/server-client") }
func (f Files) EtcdPeer() Pair     { return f.pair("etcd/peer-server-client") }
func (f Files) EtcdClient() Pair   { return f.pair("etcd/client") }
func (f Files) ServiceKey() string { return f.tls("service.key") }

// The credentials.
func (f Files) Passwords() string  { return f.cred("passwd") }
func (f Files) Encryption() string { return f.cred("encryption-config.json") }

// Kubeconfig is where the kubeconfig of a part lies, such as "controller".
func (f Files) Kubeconfig(part string) string { return f.cred(part + ".kubeconfig") }

// Shared are the files that every server of a cluster has alike, by the names under
// which a server hands them to one that joins (GET /v1-k3s/server-bootstrap).
func (f Files) Shared() map[string]string {
	return map[string]string{
		"ServerCA":           f.ServerCA().Cert,
		"ServerCAKey":        f.ServerCA().Key,
		"ClientCA":           f.ClientCA().Cert,
		"ClientCAKey":        f.ClientCA().Key,
		"RequestHeaderCA":    f.RequestHeaderCA().Cert,
		"RequestHeaderCAKey": f.RequestHeaderCA().Key,
		"ETCDServerCA":       f.EtcdServerCA().Cert,
		"ETCDServerCAKey":    f.EtcdServerCA().Key,
		"ETCDPeerCA":         f.EtcdPeerCA().Cert,
		"ETCDPeerCAKey":      f.EtcdPeerCA().Key,
		"ServiceKey":         f.ServiceKey(),
		"PasswdFile":         f.Passwords(),
		"EncryptionConfig":   f.Encryption(),
	}
}
