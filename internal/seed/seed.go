// Package seed decides the cloud-init documents of one node: the NoCloud seed
// that lies on the node's CIDATA partition or is served to it.
//
// On a node /etc is made anew at every boot and cloud-init keeps no memory, so
// everything in a seed is applied at every boot; it must be quick, and it must
// set right what persists beside it. A seed holds no secret: whoever can read
// the disk or the network can read it.
package seed

import (
	"fmt"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/payload/yamlform"
)

// MaxDocument is the largest document, in bytes. A seed is a few kilobytes; one
// that is not has been given something that belongs elsewhere.
const MaxDocument = 64 << 10

// Names of the documents, fixed by cloud-init's NoCloud data source.
const (
	NameMetaData      = "meta-data"
	NameUserData      = "user-data"
	NameNetworkConfig = "network-config"
	NameVendorData    = "vendor-data"
)

// Names lists the documents of a seed.
func Names() []string {
	return []string{NameMetaData, NameNetworkConfig, NameUserData, NameVendorData}
}

// Documents are the cloud-init documents of one node. All four are always there:
// over HTTP an absent one costs cloud-init retries.
type Documents struct {
	InstanceID    string
	MetaData      []byte
	UserData      []byte
	NetworkConfig []byte
	VendorData    []byte
}

// For decides the documents of a node of the cluster. The cluster is taken as
// valid; what only a seed cares about is checked here.
func For(c cluster.Cluster, node cluster.Node) (Documents, error) {
	docs, err := documents(c, node)
	if err != nil {
		return Documents{}, fmt.Errorf("seed of node %s: %w", node.Name, err)
	}
	return docs, nil
}

func documents(c cluster.Cluster, node cluster.Node) (Documents, error) {
	if err := check(c); err != nil {
		return Documents{}, err
	}
	network, err := networkConfig(c.Network, c.Time, node)
	if err != nil {
		return Documents{}, err
	}
	user, err := userData(c, node)
	if err != nil {
		return Documents{}, err
	}
	docs := Documents{VendorData: []byte("#cloud-config\n{}\n")}
	if docs.NetworkConfig, err = yamlform.Marshal("", network); err != nil {
		return Documents{}, err
	}
	if docs.UserData, err = yamlform.Marshal("#cloud-config\n", user); err != nil {
		return Documents{}, err
	}
	docs.InstanceID = instanceID(node, docs)
	meta := metaData{InstanceID: docs.InstanceID, LocalHostname: node.Name}
	if docs.MetaData, err = yamlform.Marshal("", meta); err != nil {
		return Documents{}, err
	}
	return docs, docs.checkSize()
}

type metaData struct {
	InstanceID    string `yaml:"instance-id"`
	LocalHostname string `yaml:"local-hostname"`
}

// instanceID names the content: cloud-init treats a changed seed as a new
// instance and applies all of it, and an operator sees which seed a node runs.
func instanceID(node cluster.Node, d Documents) string {
	content := fmt.Sprintf("%q %q %q", d.UserData, d.NetworkConfig, d.VendorData)
	return node.Name + "-" + digest.Of([]byte(content)).Short()
}

// Tree is the seed as a directory with its four files.
func (d Documents) Tree() (fstree.Tree, error) {
	return fstree.New(
		fstree.File(NameMetaData, 0o644, d.MetaData),
		fstree.File(NameUserData, 0o644, d.UserData),
		fstree.File(NameNetworkConfig, 0o644, d.NetworkConfig),
		fstree.File(NameVendorData, 0o644, d.VendorData),
	)
}

func (d Documents) checkSize() error {
	tree, err := d.Tree()
	if err != nil {
		return err
	}
	for e := range tree.All() {
		if len(e.Content) > MaxDocument {
			return fmt.Errorf("%s has %d bytes, more than the %d that a seed may have", e.Path, len(e.Content), MaxDocument)
		}
	}
	return nil
}
