package persist

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/crypto/ssh"
)

// identity is a piece of what tells one node from another: files that belong
// together, how to see that they are good, and how to make them.
type identity struct {
	name  string
	files []string // absolute, as in the table
	valid func(contents [][]byte) bool
	make  func() ([][]byte, error)
}

func identities() []identity {
	return []identity{
		{"machine id", []string{"/etc/machine-id"}, validMachineID, newMachineID},
		{"ed25519 host key", []string{"/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_ed25519_key.pub"},
			validHostKey, newEd25519},
		{"ecdsa host key", []string{"/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ecdsa_key.pub"},
			validHostKey, newECDSA},
		{"iSCSI initiator name", []string{"/etc/iscsi/initiatorname.iscsi"}, validInitiator, newInitiator},
	}
}

// EnsureIdentity makes what is missing under root, and returns the names of what
// it made. Good files are never replaced; an empty or cut one, as a power cut in
// the middle of an older program's write leaves, is.
func EnsureIdentity(root string) ([]string, error) {
	var made []string
	for _, id := range identities() {
		if contents, err := readAll(root, id.files); err != nil {
			return made, fmt.Errorf("reading the %s: %w", id.name, err)
		} else if id.valid(contents) {
			continue
		}
		contents, err := id.make()
		if err != nil {
			return made, fmt.Errorf("making the %s: %w", id.name, err)
		}
		if err := writeAll(root, id.files, contents); err != nil {
			return made, fmt.Errorf("writing the %s: %w", id.name, err)
		}
		made = append(made, id.name)
	}
	return made, nil
}

func readAll(root string, files []string) ([][]byte, error) {
	contents := make([][]byte, len(files))
	for i, name := range files {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		contents[i] = data
	}
	return contents, nil
}

func writeAll(root string, files []string, contents [][]byte) error {
	for i, name := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := renameio.WriteFile(path, contents[i], modeOf(name), renameio.WithStaticPermissions(modeOf(name))); err != nil {
			return err
		}
	}
	return nil
}

// modeOf is the mode that the table gives a file.
func modeOf(path string) fs.FileMode {
	for _, e := range Table() {
		if e.Path == path {
			return fs.FileMode(e.Mode)
		}
	}
	return 0o600
}

// A machine ID is 32 lower-case hex digits and a newline (machine-id(5)); made
// like a version 4 UUID, which some programs expect.
func newMachineID() ([][]byte, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return [][]byte{[]byte(hex.EncodeToString(b[:]) + "\n")}, nil
}

func validMachineID(c [][]byte) bool {
	raw, err := hex.DecodeString(strings.TrimSuffix(string(c[0]), "\n"))
	return err == nil && len(raw) == 16 && !bytes.Equal(raw, make([]byte, 16))
}

func newEd25519() ([][]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return hostKey(key)
}

func newECDSA() ([][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return hostKey(key)
}

// hostKey writes a key as sshd reads it: OpenSSH's private format, and one line.
func hostKey(key crypto.Signer) ([][]byte, error) {
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, err
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return [][]byte{pem.EncodeToMemory(block), ssh.MarshalAuthorizedKey(public)}, nil
}

func validHostKey(c [][]byte) bool {
	private, err := ssh.ParsePrivateKey(c[0])
	if err != nil {
		return false
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(c[1])
	return err == nil && bytes.Equal(private.PublicKey().Marshal(), public.Marshal())
}

// The initiator's name has the form that Debian's open-iscsi gives it (RFC 3720,
// section 3.2.6.3.1).
const initiatorPrefix = "InitiatorName=iqn.1993-08.org.debian:01:"

func newInitiator() ([][]byte, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	return [][]byte{[]byte(initiatorPrefix + hex.EncodeToString(b[:]) + "\n")}, nil
}

func validInitiator(c [][]byte) bool {
	name, ok := strings.CutPrefix(string(c[0]), initiatorPrefix)
	return ok && len(strings.TrimSpace(name)) == 12
}
