package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/stores/yaml"

	"github.com/slipway/slipway/internal/diag"
)

// ErrNotEncrypted says that a document has no SOPS metadata.
var ErrNotEncrypted = errors.New("not encrypted by SOPS")

// sopsVersion is the version of the file format that is written (metadata key
// sops.version).
const sopsVersion = "3.13.3"

// NoKeyError says that none of the identities at hand opens a document.
type NoKeyError struct {
	Have, Want []string // recipients: of the identities, and of the document
}

func (e *NoKeyError) Error() string {
	return fmt.Sprintf("no age key at hand opens it: it is for %s, the keys at hand are %s", list(e.Want), list(e.Have))
}

func list(words []string) string {
	if len(words) == 0 {
		return "nobody by age"
	}
	return strings.Join(words, ", ")
}

// Encrypted says whether a YAML document has SOPS metadata.
func Encrypted(data []byte) bool {
	_, err := load(data)
	return err == nil
}

func load(data []byte) (sops.Tree, error) {
	tree, err := store().LoadEncryptedFile(data)
	if errors.Is(err, sops.MetadataNotFound) {
		return tree, ErrNotEncrypted
	}
	return tree, err
}

func store() *yaml.Store { return yaml.NewStore(&config.YAMLStoreConfig{Indent: 2}) }

// Recipients are the age public keys that a document is encrypted for.
func Recipients(data []byte) []string {
	tree, err := load(data)
	if err != nil {
		return nil
	}
	var out []string
	for _, key := range ageKeys(tree) {
		out = append(out, key.Recipient)
	}
	return out
}

// otherKeys counts the keys of a document that are no age keys.
func otherKeys(data []byte) int {
	tree, err := load(data)
	if err != nil {
		return 0
	}
	return tree.Metadata.MasterKeyCount() - len(ageKeys(tree))
}

func ageKeys(tree sops.Tree) []*sopsage.MasterKey {
	var out []*sopsage.MasterKey
	for _, group := range tree.Metadata.KeyGroups {
		for _, key := range group {
			if k, ok := key.(*sopsage.MasterKey); ok {
				out = append(out, k)
			}
		}
	}
	return out
}

// Decrypt opens a YAML document and proves its integrity: the code over all values
// must be the one that was stored with them.
func Decrypt(data []byte, ids Identities) ([]byte, error) {
	tree, err := load(data)
	if err != nil {
		return nil, err
	}
	key, err := dataKey(tree, ids)
	if err != nil {
		return nil, err
	}
	cipher := aes.NewCipher()
	mac, err := tree.Decrypt(key, cipher)
	if err != nil {
		return nil, errors.New("a value cannot be decrypted: the file was changed by something other than sops")
	}
	stored, err := cipher.Decrypt(tree.Metadata.MessageAuthenticationCode, key, tree.Metadata.LastModified.Format(time.RFC3339))
	if err != nil || stored != mac {
		return nil, errors.New("its integrity code does not match: the file was changed by something other than sops")
	}
	return store().EmitPlainFile(tree.Branches)
}

func dataKey(tree sops.Tree, ids Identities) ([]byte, error) {
	var want []string
	for _, key := range ageKeys(tree) {
		want = append(want, key.Recipient)
		if len(ids.keys) == 0 {
			continue
		}
		r, err := age.Decrypt(armor.NewReader(strings.NewReader(key.EncryptedKey)), ids.keys...)
		if err != nil {
			continue // for somebody else; the list of all of them is in the error
		}
		return io.ReadAll(r)
	}
	return nil, diag.WithHint(&NoKeyError{Have: ids.Recipients(), Want: want}, "use the key of one of them with --age-key, or have one of them run sops updatekeys")
}

// ObjectValues are the fields of a Kubernetes Secret that are sealed, so that its kind
// and name stay readable (SOPS's README, "Encrypting only parts of a file").
const ObjectValues = "^(data|stringData)$"

// Encrypt seals a plain YAML document for recipients (age public keys). only is a
// regular expression for the keys whose values are sealed; empty means all.
func Encrypt(plain []byte, recipients []string, only string, now time.Time) ([]byte, error) {
	branches, err := store().LoadPlainFile(plain)
	if err != nil {
		return nil, err
	}
	var group sops.KeyGroup
	for _, r := range recipients {
		key, err := sopsage.MasterKeyFromRecipient(r)
		if err != nil {
			return nil, diag.WithHint(fmt.Errorf("%q is no age recipient", r), "age-keygen prints it: it begins with age1")
		}
		group = append(group, key)
	}
	tree := sops.Tree{Branches: branches, Metadata: sops.Metadata{
		KeyGroups: []sops.KeyGroup{group}, LastModified: now.UTC(), Version: sopsVersion, EncryptedRegex: only,
	}}
	if only == "" {
		tree.Metadata.UnencryptedSuffix = "_unencrypted" // what sops itself writes
	}
	return seal(tree)
}

func seal(tree sops.Tree) ([]byte, error) {
	key, errs := tree.GenerateDataKey()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(key, cipher)
	if err != nil {
		return nil, err
	}
	tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, key, tree.Metadata.LastModified.Format(time.RFC3339))
	if err != nil {
		return nil, err
	}
	out, err := store().EmitEncryptedFile(tree)
	if err != nil {
		return nil, err
	}
	return bytes.TrimLeft(out, "\n"), nil
}
