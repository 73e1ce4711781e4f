// Package secrets holds what a cluster must be born with and nobody may read: the
// values of a SOPS file beside the profile, decrypted in memory only, and the age
// identities that open it.
//
// It is the one owner of SOPS and age. SOPS's own key lookup is not used: it reads
// the environment and logs, and what it cannot open it reports as a chain of
// sentences. Here the caller says which identities there are.
package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/diag"
)

// Names of the values that a cluster needs.
const (
	Token         = "k3sToken"    // joins a node to the cluster; k3s docs, "token"
	GitIdentity   = "gitIdentity" // SSH private key that reads the GitOps repository
	GitToken      = "gitToken"    // or a password for https, with gitUser
	GitUser       = "gitUser"
	GitKnownHosts = "gitKnownHosts" // host keys of the forge, lines of known_hosts
	GitCA         = "gitCA"         // certificate authority of the forge, PEM
	VPNPrefix     = "vpn."          // private key of the WireGuard interface of that name
)

// File is a decrypted SOPS file. It has no String method that shows a value.
type File struct {
	Path       string
	Recipients []string // who can open it, as age public keys
	values     map[string]string
	others     int // keys that are no age keys
}

// Get returns the value of name; ok is false when the file has none.
func (f *File) Get(name string) (value string, ok bool) {
	value, ok = f.values[name]
	return value, ok && value != ""
}

// Need returns the value of name, or an error that says how to add it.
func (f *File) Need(name string) (string, error) {
	if value, ok := f.Get(name); ok {
		return value, nil
	}
	return "", diag.WithHint(fmt.Errorf("%s holds no %s", f.Path, name), "bootstrap init-secrets adds what is missing; sops edits the file")
}

// Names are the names of the values, sorted.
func (f *File) Names() []string {
	var names []string
	for name := range f.values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Values are all values, for a Redactor.
func (f *File) Values() []string {
	var out []string
	for _, name := range f.Names() {
		out = append(out, f.values[name])
	}
	return out
}

// GoString keeps values out of %#v.
func (f *File) GoString() string { return f.String() }

// String keeps values out of %v.
func (f *File) String() string {
	return fmt.Sprintf("%s (%s)", f.Path, strings.Join(f.Names(), ", "))
}

// Open reads and decrypts the SOPS file at path. Errors: fs.ErrNotExist when there
// is none, ErrNotEncrypted, NoKeyError when no identity opens it.
func Open(path string, ids Identities) (*File, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.WithHint(fmt.Errorf("no secrets for this profile: %w", err), "make them with bootstrap init-secrets")
	}
	if err != nil {
		return nil, err
	}
	clear, err := Decrypt(data, ids)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &File{Path: path, Recipients: Recipients(data), others: otherKeys(data), values: map[string]string{}}
	if err := yaml.Unmarshal(clear, &f.values); err != nil {
		// The error of the reader quotes the value; it stays here.
		return nil, diag.WithHint(fmt.Errorf("%s is not a flat map of names to strings", path), "edit it with sops")
	}
	return f, nil
}
