// Package identity is what a cluster is recognised by, and the decisions that hang
// on it: whether the cluster that answers is the one that the ledger knows, whether
// a new one may be made, and how far the nodes have drifted from the profile. All of
// it can be seen again on the living cluster, so losing the record loses nothing.
package identity

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/digest"
)

// Cluster is a cluster as it was seen. It holds no secret.
type Cluster struct {
	Environment string `json:"environment"`
	Name        string `json:"name"`

	// CA is the digest of the certificate (DER) that signs the API servers'. It is
	// made with the cluster and changes only when an operator rotates it.
	CA digest.Digest `json:"ca"`
	// UID is that of the namespace kube-system. It is born with the data in etcd and
	// never changes as long as that data lives.
	UID string `json:"uid,omitempty"`
	// Etcd is etcd's cluster ID in hexadecimal. It changes when a snapshot is restored.
	Etcd string `json:"etcd,omitempty"`

	Members  []member.Member `json:"members,omitempty"`
	Nodes    []Node          `json:"nodes,omitempty"`
	Releases []Release       `json:"releases,omitempty"`
	Flux     *Flux           `json:"flux,omitempty"`
	Seen     time.Time       `json:"seen"` // when this was looked at last
}

// Node is a node as it says it is. What only SSH shows is empty when there was none.
type Node struct {
	Name       string   `json:"name"`
	UID        string   `json:"uid,omitempty"` // of the Node object; a rebuilt node has another
	Addresses  []string `json:"addresses,omitempty"`
	MachineID  string   `json:"machineID,omitempty"`
	InstanceID string   `json:"instanceID,omitempty"` // of the seed that it was made with
	HostKeys   []string `json:"hostKeys,omitempty"`   // authorized_keys form
	Initiator  string   `json:"initiator,omitempty"`  // iSCSI name
	RootHash   string   `json:"rootHash,omitempty"`   // of the image that runs
	K3s        string   `json:"k3s,omitempty"`        // version
}

// Release is a Helm release.
type Release struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Revision  int    `json:"revision"`
	Status    string `json:"status"`
}

// Flux is what GitOps has applied.
type Flux struct {
	URL      string `json:"url,omitempty"`
	Revision string `json:"revision,omitempty"` // such as main@sha1:…
}

// CAOf is the digest of the first certificate of a PEM bundle: the one that signs.
// Others behind it are kept for a while after a rotation.
func CAOf(bundle []byte) (digest.Digest, error) {
	block, _ := pem.Decode(bundle)
	if block == nil || block.Type != "CERTIFICATE" {
		return digest.Digest{}, errors.New("the cluster's CA is no certificate in PEM form")
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return digest.Digest{}, fmt.Errorf("the cluster's CA: %w", err)
	}
	return digest.Of(block.Bytes), nil
}
