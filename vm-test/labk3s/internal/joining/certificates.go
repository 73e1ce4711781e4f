package joining

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/slipway/slipway/vm-test/labk3s/internal/nodepassword"
)

// Where a server signs the certificates of kubelets.
const (
	ClientCertPath  = "/v1-k3s/client-kubelet.crt"
	ServingCertPath = "/v1-k3s/serving-kubelet.crt"
)

// Certificate makes a key and lets the server sign it for the node; both are written
// to files that only root may read. passwordDir is named in the error of a node that
// is refused: its password is another node's, or was forgotten by the node.
func (s *Server) Certificate(ctx context.Context, path string, n Node, passwordDir, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return err
	}
	cert, err := s.Sign(ctx, path, n, csr)
	if errors.Is(err, ErrForbidden) {
		return fmt.Errorf("Node password rejected, duplicate hostname or contents of '%s' may not match server node-passwd entry, try enabling a unique node name with the --with-node-id flag: %w",
			nodepassword.File(passwordDir), err)
	}
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(certFile, cert, 0o600)
}
