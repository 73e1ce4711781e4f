// Package token knows k3s's join tokens and the file of the passwords in them.
//
// A full token is "K10<hash>::<user>:<password>": the hash is the SHA-256 of the
// server CA's PEM file in hex, by which a joining node knows the cluster before it
// says the password. A short token is the password alone and proves nothing about
// the cluster (k3s's documentation, "k3s token").
package token

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// The users of join tokens. A server may do what an agent may.
const (
	Server = "server"
	Node   = "node"
)

const prefix = "K10"

// Token is a join token.
type Token struct {
	CAHash   string // hex; "" when the token does not name the CA
	User     string // "" when it does not say
	Password string
}

// Parse reads a full or a short token.
func Parse(s string) (Token, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return Token{}, errors.New("the token is empty")
	}
	rest, full := strings.CutPrefix(s, prefix)
	if !full {
		return Token{Password: s}, nil
	}
	hash, credentials, found := strings.Cut(rest, "::")
	if !found || len(hash) != hex.EncodedLen(sha256.Size) {
		return Token{}, errors.New("the token has no valid hash of a CA")
	}
	user, password, found := strings.Cut(credentials, ":")
	if !found || password == "" {
		return Token{}, errors.New("the token has no user and password")
	}
	return Token{CAHash: hash, User: user, Password: password}, nil
}

// Full is the full token of a user for the cluster with this CA.
func Full(ca []byte, user, password string) string {
	return prefix + Hash(ca) + "::" + user + ":" + password
}

// Hash is the hash of a CA as tokens have it. The CA is one PEM certificate: k3s
// hashes chains otherwise, and this one makes none.
func Hash(ca []byte) string {
	sum := sha256.Sum256(ca)
	return hex.EncodeToString(sum[:])
}

// Check compares the CA that a server showed with the one that the token names.
func (t Token) Check(ca []byte) error {
	if got := Hash(ca); t.CAHash != "" && t.CAHash != got {
		return fmt.Errorf("token CA hash does not match the Cluster CA certificate hash: %s != %s", t.CAHash, got)
	}
	return nil
}
