package artifact

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Namespace is the domain of the signature (PROTOCOL.sshsig of OpenSSH): a
// signature made for something else is not one for an index.
const Namespace = "slipway-index"

// maxSignature bounds a signature file, bytes. One has about 300.
const maxSignature = 4 << 10

// Errors that a caller of Verify may want to tell apart.
var (
	ErrWrongKey     = errors.New("signed by another key")
	ErrBadSignature = errors.New("signature does not belong to this index")
)

// Sign signs the bytes of an index. The result is what `ssh-keygen -Y sign -n
// slipway-index` writes, byte for byte: ed25519 needs no randomness.
func Sign(index []byte, key ed25519.PrivateKey) ([]byte, error) {
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		return nil, fmt.Errorf("signing index: %w", err)
	}
	sig, err := sshsig.SignWithRand(bytes.NewReader(index), nil, signer, sshsig.HashSHA512, Namespace)
	if err != nil {
		return nil, fmt.Errorf("signing index: %w", err)
	}
	return armor(sig), nil
}

// Verify checks that signature is one of index by key.
func Verify(index, signature []byte, key ed25519.PublicKey) error {
	sig, err := parseSignature(signature)
	if err != nil {
		return err
	}
	pub, err := ssh.NewPublicKey(key)
	if err != nil {
		return fmt.Errorf("trusted key: %w", err)
	}
	if !bytes.Equal(pub.Marshal(), sig.PublicKey.Marshal()) {
		return fmt.Errorf("%w: %s, trusted is %s", ErrWrongKey, ssh.FingerprintSHA256(sig.PublicKey), ssh.FingerprintSHA256(pub))
	}
	if err := sshsig.Verify(bytes.NewReader(index), sig, pub, sshsig.HashSHA512, Namespace); err != nil {
		return ErrBadSignature
	}
	return nil
}

// SignedBy returns the key that a signature names. It proves nothing: whoever
// changes an index can sign it anew. It is for messages.
func SignedBy(signature []byte) (ed25519.PublicKey, error) {
	sig, err := parseSignature(signature)
	if err != nil {
		return nil, err
	}
	return toEd25519(sig.PublicKey)
}

// parseSignature accepts exactly the bytes that Sign and ssh-keygen write, so
// that no bit of the file is without meaning.
func parseSignature(data []byte) (*sshsig.Signature, error) {
	if len(data) > maxSignature {
		return nil, fmt.Errorf("signature has %d bytes, more than %d", len(data), maxSignature)
	}
	sig, err := sshsig.Unarmor(data)
	if err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	if _, err := toEd25519(sig.PublicKey); err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	if sig.Namespace != Namespace {
		return nil, fmt.Errorf("signature is one for %q, not for %q", sig.Namespace, Namespace)
	}
	if sig.HashAlgorithm != sshsig.HashSHA512 {
		return nil, fmt.Errorf("signature uses %s, want %s", sig.HashAlgorithm, sshsig.HashSHA512)
	}
	if len(sig.Signature.Rest) != 0 || !bytes.Equal(armor(sig), data) {
		return nil, errors.New("signature is not in the form that ssh-keygen writes")
	}
	return sig, nil
}

func toEd25519(pub ssh.PublicKey) (ed25519.PublicKey, error) {
	if c, ok := pub.(ssh.CryptoPublicKey); ok {
		if key, ok := c.CryptoPublicKey().(ed25519.PublicKey); ok {
			return key, nil
		}
	}
	return nil, fmt.Errorf("key is of type %s, want ssh-ed25519", pub.Type())
}

// armor writes a signature with lines of 70 characters, as OpenSSH does.
func armor(sig *sshsig.Signature) []byte {
	const columns = 70
	text := base64.StdEncoding.EncodeToString(sig.Marshal())
	var b bytes.Buffer
	b.WriteString("-----BEGIN " + sshsig.PEMType + "-----\n")
	for len(text) > 0 {
		n := min(columns, len(text))
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	b.WriteString("-----END " + sshsig.PEMType + "-----\n")
	return b.Bytes()
}
