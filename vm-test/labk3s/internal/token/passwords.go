package token

import (
	"crypto/subtle"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// roles are what the users of tokens may be, as groups in the file of passwords.
var roles = map[string]string{Server: "k3s:server", Node: "k3s:agent"}

// Passwords are the users and their passwords.
type Passwords map[string]string

// Role is the role of a user who says the right password, or "".
func (p Passwords) Role(user, password string) string {
	want, known := p[user]
	if !known || subtle.ConstantTimeCompare([]byte(want), []byte(password)) != 1 {
		return ""
	}
	return roles[user]
}

// ReadPasswords reads k3s's server/cred/passwd: lines of password, user, user and
// role, separated by commas. A file that is not there has no users.
func ReadPasswords(file string) (Passwords, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Passwords{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	out := Passwords{}
	for _, l := range lines {
		if len(l) >= 2 {
			out[l[1]] = l[0]
		}
	}
	return out, nil
}

// Write writes the file, readable for root only.
func (p Passwords) Write(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	for _, user := range []string{Node, Server} {
		if password, known := p[user]; known {
			w.Write([]string{password, user, user, roles[user]}) // Error tells
		}
	}
	w.Flush()
	return errors.Join(w.Error(), f.Close())
}
