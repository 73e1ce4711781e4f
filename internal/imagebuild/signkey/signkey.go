// Package signkey keeps the key that signs a build's index: an OpenSSH ed25519
// key of the person who builds, made on first use. It never goes into an image;
// its public half does the checking.
package signkey

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/crypto/ssh"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
)

// comment stands in new key files, in place of ssh-keygen's user@host: a public
// key that goes around should not name the machine it was made on.
const comment = "slipway"

// maxFile bounds a key file, bytes.
const maxFile = 16 << 10

// Key is a signing key and where it lies.
type Key struct {
	Private ed25519.PrivateKey
	Path    string
	Created bool // made by this call
}

// Public is the public half.
func (k Key) Public() ed25519.PublicKey { return k.Private.Public().(ed25519.PublicKey) }

// AllowedSigner is the line for an allowed_signers file of ssh-keygen, with a
// final newline; the principal is "slipway".
func (k Key) AllowedSigner() (string, error) { return artifact.AllowedSigner(comment, k.Public()) }

// DefaultPath is where the key lies when none is named: sign_ed25519 in
// $XDG_CONFIG_HOME/slipway, or in ~/.config/slipway.
func DefaultPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", diag.WithHint(fmt.Errorf("looking for the signing key: %w", err), "set HOME, or name the key with --key")
	}
	return filepath.Join(dir, "slipway", "sign_ed25519"), nil
}

// PublicPath is where the public half of the key at path lies.
func PublicPath(path string) string { return path + ".pub" }

// LoadOrCreate loads the key at path, or makes it when there is none, together
// with its public half and its directory (0700).
func LoadOrCreate(path string) (Key, error) {
	k, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	created, err := create(path)
	if err != nil {
		return Key{}, fmt.Errorf("making signing key: %w", err)
	}
	// Load what is there now: another build may have been faster.
	k, err = Load(path)
	k.Created = created
	return k, err
}

// create makes a key and reports false when one has appeared meanwhile. The file
// gets its name by link(2), which never replaces: two first builds at once must
// not sign with different keys.
func create(path string) (bool, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return false, err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return false, err
	}
	tmp, err := os.CreateTemp(dir, ".sign_ed25519*.tmp") // mode 0600
	if err != nil {
		return false, err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(pem.EncodeToMemory(block))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return false, err
	}
	err = os.Link(tmp.Name(), path)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// Load reads the key at path. It refuses keys of another type, with a passphrase,
// and those that others can read; a lost public half is written again.
func Load(path string) (Key, error) {
	data, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, diag.WithHint(fmt.Errorf("signing key: %w", err), makeOne)
	}
	if err != nil {
		return Key{}, fmt.Errorf("signing key: %w", err)
	}
	private, err := parse(data)
	if err != nil {
		return Key{}, fmt.Errorf("signing key %s: %w", path, err)
	}
	k := Key{Private: private, Path: path}
	if err := k.keepPublic(); err != nil {
		return Key{}, fmt.Errorf("signing key: %w", err)
	}
	return k, nil
}

// readPrivate reads the file, and checks the very file it reads.
func readPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if strings.HasSuffix(path, ".pub") {
		return nil, diag.WithHint(fmt.Errorf("%s is a public key, and signing needs the private one", path), "leave out the .pub: "+strings.TrimSuffix(path, ".pub"))
	}
	if perm := st.Mode().Perm(); perm&0o077 != 0 {
		return nil, diag.WithHint(fmt.Errorf("%s can be read or written by others (mode %04o)", path, perm), "run chmod 600 "+path)
	}
	if st.Size() > maxFile {
		return nil, fmt.Errorf("%s has %d bytes, too many for a key", path, st.Size())
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

const makeOne = "make one with ssh-keygen -t ed25519 -N '' -f FILE, or leave out --key"

func parse(data []byte) (ed25519.PrivateKey, error) {
	raw, err := ssh.ParseRawPrivateKey(data)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, diag.WithHint(errors.New("has a passphrase, and a build asks for none"), "use a key without one; ssh-keygen -p removes it from a copy")
	case err != nil:
		return nil, diag.WithHint(errors.New("not a private key in OpenSSH form"), makeOne)
	}
	key, ok := raw.(*ed25519.PrivateKey)
	if !ok {
		return nil, diag.WithHint(fmt.Errorf("is a %T, want ed25519", raw), makeOne)
	}
	return *key, nil
}

// keepPublic makes sure that the public half beside the key is there and its own.
func (k Key) keepPublic() error {
	path := PublicPath(k.Path)
	have, err := LoadPublic(path)
	switch {
	case err == nil && have.Equal(k.Public()):
		return nil
	case err == nil:
		return diag.WithHint(fmt.Errorf("%s does not belong to %s", path, k.Path), "remove the .pub file; it is written again")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	line, err := artifact.FormatKey(k.Public(), comment)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, []byte(line), 0o644, renameio.IgnoreUmask())
}

// LoadPublic reads a public key file: a .pub file or one line of allowed_signers.
func LoadPublic(path string) (ed25519.PublicKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, diag.WithHint(fmt.Errorf("public key: %w", err), "name the .pub file of the key that signed the build; imagebuild build prints where it is")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	key, err := artifact.ParseKey(data)
	if err != nil {
		return nil, diag.WithHint(fmt.Errorf("public key %s: %w", path, err), "want the .pub file of the key that signed the build")
	}
	return key, nil
}
