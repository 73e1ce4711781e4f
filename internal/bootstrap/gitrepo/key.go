package gitrepo

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"strings"

	cryptossh "golang.org/x/crypto/ssh"
)

// NewKey makes a deploy key: an ed25519 private key in OpenSSH's form.
func NewKey(comment string) (private string, err error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	block, err := cryptossh.MarshalPrivateKey(key, comment)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(block)), nil
}

// PublicKey is the line that the forge gets for a private key.
func PublicKey(private, comment string) (string, error) {
	signer, err := cryptossh.ParsePrivateKey([]byte(private))
	if err != nil {
		return "", errors.New("the deploy key cannot be read") // its parser's words may quote it
	}
	return strings.TrimSpace(string(cryptossh.MarshalAuthorizedKey(signer.PublicKey()))) + " " + comment, nil
}
