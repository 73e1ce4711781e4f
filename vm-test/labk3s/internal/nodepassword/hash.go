// Package nodepassword keeps one node from passing for another: a node shows a
// password that it made itself, and the cluster remembers the first one in the
// Secret <node>.node-password.k3s of namespace kube-system.
package nodepassword

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/scrypt"
)

// The cost of a hash. They are written into it, so they can change.
const (
	logN     = 15
	r        = 8
	p        = 1
	saltSize = 8
	hashSize = 64
	format   = "$1" // the first field of a hash
)

// ErrWrong is the error of a password that is not the node's.
var ErrWrong = errors.New("the node password does not match")

// Hash hashes a password with scrypt: "$1:<salt>:<log2 N>:<r>:<p>:<hash>".
func Hash(password string) (string, error) {
	salt := make([]byte, saltSize)
	rand.Read(salt) // it cannot fail
	sum, err := scrypt.Key([]byte(password), salt, 1<<logN, r, p, hashSize)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%s:%d:%d:%d:%s", format, hex.EncodeToString(salt), logN, r, p, base64.RawStdEncoding.EncodeToString(sum)), nil
}

// Verify compares a password with a hash. ErrWrong is wrapped when they differ, and
// when the hash is none.
func Verify(hash, password string) error {
	salt, n, want, err := parse(hash)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrong, err)
	}
	got, err := scrypt.Key([]byte(password), salt, 1<<n[0], n[1], n[2], len(want))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrong, err)
	}
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return ErrWrong
	}
	return nil
}

func parse(hash string) (salt []byte, n [3]int, want []byte, err error) {
	f := strings.Split(hash, ":")
	if len(f) != 6 || f[0] != format {
		return nil, n, nil, errors.New("the hash has another format")
	}
	salt, err = hex.DecodeString(f[1])
	for i := range n {
		var e error
		n[i], e = strconv.Atoi(f[2+i])
		err = errors.Join(err, e)
	}
	if n[0] < 1 || n[0] > 20 {
		err = errors.Join(err, errors.New("the hash costs too much"))
	}
	var e error
	if want, e = base64.RawStdEncoding.DecodeString(f[5]); e == nil && len(want) != hashSize {
		e = errors.New("the hash has another length")
	}
	return salt, n, want, errors.Join(err, e)
}
