package artifact

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// ParseKey reads a public key as ssh-keygen writes it ("ssh-ed25519 AAAA… comment"),
// or a line of an allowed_signers file, which has the signer's name in front.
// Comment lines and empty ones are passed over; a second key is refused.
func ParseKey(text []byte) (ed25519.PublicKey, error) {
	var key ed25519.PublicKey
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if key != nil {
			return nil, errors.New("more than one public key")
		}
		var err error
		if key, err = parseKeyLine(line); err != nil {
			return nil, err
		}
	}
	if key == nil {
		return nil, errors.New("no public key")
	}
	return key, nil
}

func parseKeyLine(line string) (ed25519.PublicKey, error) {
	if strings.Contains(line, "PRIVATE KEY") {
		return nil, errors.New("this is a private key, want the public one beside it")
	}
	if at := strings.Index(line, ssh.KeyAlgoED25519+" "); at > 0 {
		line = line[at:] // an allowed_signers line
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, fmt.Errorf("not a public key in OpenSSH form: %w", err)
	}
	return toEd25519(pub)
}

// FormatKey is the key as a line of a .pub file, with a final newline.
func FormatKey(key ed25519.PublicKey, comment string) (string, error) {
	pub, err := ssh.NewPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("public key: %w", err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(pub)))
	if comment != "" {
		line += " " + comment
	}
	return line + "\n", nil
}

// AllowedSigner is the line of an allowed_signers file with which
// `ssh-keygen -Y verify -I principal -n slipway-index` accepts this key.
func AllowedSigner(principal string, key ed25519.PublicKey) (string, error) {
	line, err := FormatKey(key, "")
	if err != nil {
		return "", err
	}
	return principal + ` namespaces="` + Namespace + `" ` + line, nil
}

// Fingerprint is the key's fingerprint as ssh-keygen -l prints it.
func Fingerprint(key ed25519.PublicKey) string {
	pub, err := ssh.NewPublicKey(key)
	if err != nil {
		return "invalid key"
	}
	return ssh.FingerprintSHA256(pub)
}
