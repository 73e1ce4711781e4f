package secrets

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/diag"
)

// leastRecipients is how many keys must open the secrets: the one that automation
// uses, and one that lies somewhere else for the day when that one is lost.
const leastRecipients = 2

// Complete adds to the SOPS file at path the values that it lacks, made by makers,
// and creates it when there is none. What is there stays as it is; a file that lacks
// nothing is not written. It returns the names of what was made.
//
// recipients are for a new file; an existing one keeps its own. It is written to a
// temporary name, flushed, and renamed.
func Complete(path string, recipients []string, ids Identities, makers map[string]func() (string, error), now time.Time) ([]string, error) {
	values := map[string]string{}
	old, err := Open(path, ids)
	switch {
	case err == nil && old.others > 0:
		return nil, diag.WithHint(fmt.Errorf("%s is also encrypted for keys that are no age keys", path), "add what is missing with sops, which knows them")
	case err == nil:
		values, recipients = old.values, old.Recipients
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := enough(recipients); err != nil {
		return nil, err
	}
	made, err := fill(values, makers)
	if err != nil || len(made) == 0 {
		return nil, err
	}
	plain, err := yaml.Marshal(values)
	if err != nil {
		return nil, err
	}
	sealed, err := Encrypt(plain, recipients, "", now)
	if err != nil {
		return nil, err
	}
	if err := renameio.WriteFile(path, sealed, 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return made, syncDir(path)
}

func enough(recipients []string) error {
	distinct := slices.Compact(slices.Sorted(slices.Values(recipients)))
	if len(distinct) >= leastRecipients {
		return nil
	}
	return diag.WithHint(fmt.Errorf("%d recipients for the secrets, and it takes %d: one that automation uses and one kept elsewhere for recovery", len(distinct), leastRecipients),
		"age-keygen -o KEYFILE makes a key and prints its recipient; give each with --recipient")
}

func fill(values map[string]string, makers map[string]func() (string, error)) ([]string, error) {
	var made []string
	for name, maker := range makers {
		if values[name] != "" {
			continue
		}
		value, err := maker()
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", name, err)
		}
		values[name] = value
		made = append(made, name)
	}
	slices.Sort(made)
	return made, nil
}

// NewToken makes a token for k3s: 32 random bytes in hexadecimal, a form that needs
// no quoting anywhere.
func NewToken() (string, error) {
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}

// syncDir makes the rename last.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
