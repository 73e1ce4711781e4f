package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/slipway/slipway/internal/diag"
)

// Identities are age private keys and where they came from.
type Identities struct {
	keys   []age.Identity
	lines  []string // the keys as text, one each
	Origin string   // a path, or the name of an environment variable
}

// The places where SOPS looks for age keys, which are ours too (SOPS's README,
// "Encrypting using age").
const (
	keyEnv     = "SOPS_AGE_KEY"
	keyFileEnv = "SOPS_AGE_KEY_FILE"
	keyPath    = "sops/age/keys.txt"
)

// Find reads the age identities: of the file at path, or when path is empty of where
// SOPS looks. None at all is an error that names these places.
func Find(path string, env func(string) string, configDir string) (Identities, error) {
	switch {
	case path != "":
		return fromFile(path)
	case env(keyEnv) != "":
		return Parse([]byte(env(keyEnv)), keyEnv)
	case env(keyFileEnv) != "":
		return fromFile(env(keyFileEnv))
	}
	ids, err := fromFile(filepath.Join(configDir, keyPath))
	if errors.Is(err, fs.ErrNotExist) {
		return Identities{}, diag.WithHint(errors.New("no age key to open secrets with"),
			fmt.Sprintf("give --age-key FILE, or set %s or %s, or put it in %s", keyFileEnv, keyEnv, filepath.Join(configDir, keyPath)))
	}
	return ids, err
}

func fromFile(path string) (Identities, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Identities{}, diag.WithHint(fmt.Errorf("reading age key: %w", err), "name the file that age-keygen wrote with --age-key, or in "+keyFileEnv)
	}
	return Parse(data, path)
}

// Parse reads identities as age-keygen writes them. Its errors never quote a line.
func Parse(data []byte, origin string) (Identities, error) {
	keys, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil {
		return Identities{}, diag.WithHint(fmt.Errorf("%s holds no age identity", origin), "age-keygen writes such a file; its lines begin with AGE-SECRET-KEY-1")
	}
	ids := Identities{keys: keys, Origin: origin}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "AGE-SECRET-KEY-") {
			ids.lines = append(ids.lines, line)
		}
	}
	return ids, nil
}

// Recipients are the public keys of the identities that have one.
func (i Identities) Recipients() []string {
	var out []string
	for _, k := range i.keys {
		switch k := k.(type) {
		case *age.X25519Identity:
			out = append(out, k.Recipient().String())
		case *age.HybridIdentity:
			out = append(out, k.Recipient().String())
		}
	}
	return out
}

// Text is what a Flux decryption Secret holds under a name that ends in .agekey.
func (i Identities) Text() []byte { return []byte(strings.Join(i.lines, "\n") + "\n") }

// Values are the private keys as text, for a Redactor.
func (i Identities) Values() []string { return i.lines }

// String keeps the keys out of %v.
func (i Identities) String() string { return fmt.Sprintf("%d age keys of %s", len(i.keys), i.Origin) }

// GoString keeps the keys out of %#v.
func (i Identities) GoString() string { return i.String() }
