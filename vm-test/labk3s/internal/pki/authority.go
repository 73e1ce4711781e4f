package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// How long certificates are good for, as k3s has it.
const (
	authorityYears = 10
	leafYears      = 1
)

// Authority is a certificate authority that can sign.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return a.pem }

// Pool is the authority as the only one that is trusted.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Subject is what a certificate says and what it is good for.
type Subject struct {
	Name   string
	Groups []string
	Names  []string // DNS names and IP addresses
	Uses   []x509.ExtKeyUsage
}

// Client and Serving are the uses of certificates.
var (
	Client  = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	Serving = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	Both    = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
)

// Load reads an authority.
func Load(p Pair) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, fmt.Errorf("reading an authority: %w", err)
	}
	text, err := os.ReadFile(p.Cert)
	if err != nil {
		return nil, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s holds no key that can sign", p.Key)
	}
	return &Authority{cert: pair.Leaf, key: signer, pem: text}, nil
}

// ensureAuthority loads an authority, and makes it when it is not there. Its name
// ends in the time of its birth, like that of k3s's authorities.
func ensureAuthority(p Pair, name string, now time.Time) (*Authority, error) {
	if _, err := os.Stat(p.Cert); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return Load(p)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{
		SerialNumber:          big.NewInt(0),
		Subject:               pkix.Name{CommonName: fmt.Sprintf("%s-ca@%d", name, now.Unix())},
		NotBefore:             now.UTC(),
		NotAfter:              now.AddDate(authorityYears, 0, 0).UTC(),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if err := writeKey(p.Key, key); err != nil {
		return nil, err
	}
	if err := writeFile(p.Cert, encode(der)); err != nil {
		return nil, err
	}
	return Load(p)
}

// Sign signs a public key. A certificate is good from the birth of its authority: a
// node whose clock is a little behind must be able to use it.
func (a *Authority) Sign(s Subject, key crypto.PublicKey, now time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: s.Name, Organization: s.Groups},
		NotBefore:    a.cert.NotBefore,
		NotAfter:     now.AddDate(leafYears, 0, 0).UTC(),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  s.Uses,
	}
	for _, name := range s.Names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for %s: %w", s.Name, err)
	}
	return encode(der), nil
}

// issue writes a new pair.
func (a *Authority) issue(p Pair, s Subject, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert, err := a.Sign(s, key.Public(), now)
	if err != nil {
		return err
	}
	if err := writeKey(p.Key, key); err != nil {
		return err
	}
	return writeFile(p.Cert, append(cert, a.pem...))
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writeFile(name, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// writeFile writes a file that only root may read, and never half of it.
func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	half := name + ".half"
	if err := os.WriteFile(half, data, 0o600); err != nil {
		return err
	}
	return os.Rename(half, name)
}
