// Package hostkey knows by which keys the nodes prove who they are, and keeps the
// ones that an operator trusted by hand in a known_hosts file. A key is one line in
// the form of authorized_keys: type and base64, perhaps a comment.
package hostkey

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Choose returns the keys that a node may show. Keys pinned in the profile are the
// author's word and exclude all others. Without them a node is known by what it
// reported after its install, on the ticket that only this install had, and by what
// an operator trusted by hand. Nothing is returned for a node that nobody vouches for.
func Choose(pinned, reported, trusted []string) []string {
	if len(pinned) > 0 {
		return pinned
	}
	var out []string
	for _, line := range slices.Concat(reported, trusted) {
		if !Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// Contains reports whether a key is in a list, whatever the comments say.
func Contains(list []string, line string) bool {
	key, err := parse(line)
	return err == nil && slices.ContainsFunc(list, func(other string) bool {
		o, err := parse(other)
		return err == nil && bytes.Equal(o.Marshal(), key.Marshal())
	})
}

// Fingerprint is a key as a person compares it: "SHA256:… (ED25519)", what
// ssh-keygen -l shows and what a node shows above its login prompt.
func Fingerprint(line string) (string, error) {
	key, err := parse(line)
	if err != nil {
		return "", err
	}
	return Show(key), nil
}

// Show is the fingerprint of a key that is parsed already.
func Show(key ssh.PublicKey) string {
	name := strings.TrimSuffix(strings.TrimPrefix(key.Type(), "ssh-"), "@openssh.com")
	if strings.HasPrefix(name, "ecdsa") {
		name = "ecdsa"
	}
	return ssh.FingerprintSHA256(key) + " (" + strings.ToUpper(name) + ")"
}

// Parse reads keys for an SSH client.
func Parse(lines []string) ([]ssh.PublicKey, error) {
	var out []ssh.PublicKey
	for _, line := range lines {
		key, err := parse(line)
		if err != nil {
			return nil, err
		}
		out = append(out, key)
	}
	return out, nil
}

func parse(line string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, fmt.Errorf("not a host key: %.60q", line)
	}
	return key, nil
}

// line is a key without its comment.
func line(key ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) }

// sorted puts the kind of key first that a client prefers.
func sorted(keys []ssh.PublicKey) []ssh.PublicKey {
	slices.SortStableFunc(keys, func(a, b ssh.PublicKey) int { return cmp.Compare(rank(a.Type()), rank(b.Type())) })
	return keys
}

func rank(kind string) int {
	if kind == ssh.KeyAlgoED25519 {
		return 0
	}
	return 1
}
