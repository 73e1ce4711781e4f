// Package kubeconfig makes of the kubeconfig that k3s writes on a server, which is for
// that server alone, the one that an operator uses: for the API's virtual address, with
// the servers themselves as fallbacks. It is pure.
package kubeconfig

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/payload/yamlform"
)

// file is a kubeconfig, as far as k3s writes it (kubernetes.io, "Organizing Cluster
// Access Using kubeconfig Files").
type file struct {
	APIVersion string    `yaml:"apiVersion"`
	Kind       string    `yaml:"kind"`
	Clusters   []target  `yaml:"clusters"`
	Contexts   []context `yaml:"contexts"`
	Current    string    `yaml:"current-context"`
	Users      []user    `yaml:"users"`
}

type target struct {
	Name    string `yaml:"name"`
	Cluster struct {
		CA     string `yaml:"certificate-authority-data"`
		Server string `yaml:"server"`
	} `yaml:"cluster"`
}

type context struct {
	Name    string `yaml:"name"`
	Context struct {
		Cluster string `yaml:"cluster"`
		User    string `yaml:"user"`
	} `yaml:"context"`
}

type user struct {
	Name string `yaml:"name"`
	User struct {
		Certificate string `yaml:"client-certificate-data"`
		Key         string `yaml:"client-key-data"`
	} `yaml:"user"`
}

const header = "# Written by Slipway. It opens the cluster as its administrator: keep it secret.\n"

// Name is what the cluster is called in a kubeconfig: two environments have one
// cluster name, and people merge files.
func Name(c cluster.Cluster) string { return c.Name + "-" + c.Environment }

// endpoint is one way to the API.
type endpoint struct{ name, url string }

// endpoints are the ways to the API: the virtual address where there is one, else
// the first server, under the cluster's name; then every server under its own.
func endpoints(c cluster.Cluster) []endpoint {
	var out []endpoint
	if vip := c.Network.APIVIP; vip.IsValid() {
		out = append(out, endpoint{Name(c), k3sconf.URL(vip)})
	}
	for _, n := range c.Servers() {
		if len(out) == 0 {
			out = append(out, endpoint{Name(c), k3sconf.URL(n.Address())})
		}
		out = append(out, endpoint{Name(c) + "-" + n.Name, k3sconf.URL(n.Address())})
	}
	return out
}

// Make makes the operator's kubeconfig of a server's. Every node of the cluster needs
// an address, see k3sconf.Addressed.
func Make(c cluster.Cluster, fromServer []byte) ([]byte, error) {
	k, err := read(fromServer)
	if err != nil {
		return nil, err
	}
	out := file{APIVersion: "v1", Kind: "Config", Current: Name(c), Users: []user{k.Users[0]}}
	out.Users[0].Name = Name(c) + "-admin"
	for _, e := range endpoints(c) {
		var t target
		t.Name, t.Cluster.CA, t.Cluster.Server = e.name, k.Clusters[0].Cluster.CA, e.url
		out.Clusters = append(out.Clusters, t)
		var x context
		x.Name, x.Context.Cluster, x.Context.User = e.name, e.name, out.Users[0].Name
		out.Contexts = append(out.Contexts, x)
	}
	return yamlform.Marshal(header, out)
}

func read(data []byte) (file, error) {
	var k file
	if err := yaml.Unmarshal(data, &k); err != nil {
		return k, errors.New("not a kubeconfig: it cannot be read as YAML") // what follows could quote a key
	}
	if len(k.Clusters) == 0 || len(k.Users) == 0 || k.Clusters[0].Cluster.CA == "" || k.Users[0].User.Certificate == "" || k.Users[0].User.Key == "" {
		return k, errors.New("not a kubeconfig of an administrator: it lacks a CA, a certificate or a key")
	}
	return k, nil
}

// CA is the certificate authority of a kubeconfig, PEM.
func CA(data []byte) ([]byte, error) {
	k, err := read(data)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(k.Clusters[0].Cluster.CA)
}

// renewBefore is how long before its end a client certificate is replaced. k3s makes
// them for a year and renews its own in the last 90 days.
const renewBefore = 30 * 24 * time.Hour

// Stale says why a kubeconfig that was made earlier must be made anew, or "".
func Stale(c cluster.Cluster, data []byte, now time.Time) string {
	k, err := read(data)
	if err != nil {
		return err.Error()
	}
	var have []endpoint
	for _, t := range k.Clusters {
		have = append(have, endpoint{t.Name, t.Cluster.Server})
	}
	if !slices.Equal(have, endpoints(c)) || k.Current != Name(c) {
		return "the ways to the API have changed"
	}
	end, err := expires(k.Users[0].User.Certificate)
	switch {
	case err != nil:
		return err.Error()
	case end.Before(now):
		return fmt.Sprintf("its certificate has expired on %s", end.UTC().Format("2006-01-02"))
	case end.Before(now.Add(renewBefore)):
		return fmt.Sprintf("its certificate expires on %s", end.UTC().Format("2006-01-02"))
	}
	return ""
}

func expires(certificate string) (time.Time, error) {
	text, err := base64.StdEncoding.DecodeString(certificate)
	block, _ := pem.Decode(text)
	if err != nil || block == nil {
		return time.Time{}, errors.New("its certificate cannot be read")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, errors.New("its certificate cannot be read")
	}
	return c.NotAfter, nil
}
