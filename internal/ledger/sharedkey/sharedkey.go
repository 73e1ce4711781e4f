// Package sharedkey is how the members of a ledger know each other: all have the
// same certificate and its key, and talk to nobody else. A certificate authority
// would be more to keep and would protect nothing more: each member can write
// everything anyway.
package sharedkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"time"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/diag"
)

// Name is the file in a member's directory that holds the key, unless another is named.
const Name = "ledger.pem"

// TLS reads the key, and makes it when it is absent and the member is the first one.
func TLS(path string, first bool) (listen, dial *tls.Config, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && first {
		b, err = create(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, diag.WithHint(fmt.Errorf("the members' shared key %s is missing", path), "copy "+Name+" from the directory of a member of the ledger to there, mode 0600")
	}
	if err != nil {
		return nil, nil, err
	}
	pair, err := tls.X509KeyPair(b, b)
	if err != nil {
		return nil, nil, fmt.Errorf("the members' shared key %s: %w", path, err)
	}
	c := tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert,
		// Names and dates say nothing about a member; the certificate itself does.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, pair.Certificate[0]) {
				return errors.New("the other side is no member of this ledger: it has another key")
			}
			return nil
		},
	}
	dial = c.Clone()
	own, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, nil, err
	}
	c.ClientCAs = x509.NewCertPool() // by which go-dqlite's proxy tells servers from clients
	c.ClientCAs.AddCert(own)
	return &c, dial, nil
}

func create(path string) ([]byte, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "slipway ledger"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280, 4.1.2.5: no well-defined end
	}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, public, private)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	b := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	return b, renameio.WriteFile(path, b, 0o600)
}
