package form

import (
	"crypto/rsa"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// minRSA is the least modulus of an RSA key, in bits (NIST SP 800-131A).
const minRSA = 2048

const newKey = "make a new one: ssh-keygen -t ed25519"

func sshKeyForm() Form {
	return Form{
		Name:    "sshkey",
		Pattern: `^(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( [ -~]*)?$`,
		Want:    "a public SSH key as in an .pub file: type, base64, comment",
		Check:   checkSSHKey,
		Explain: explainSSHKey,
	}
}

func explainSSHKey(text string) *Problem {
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~") || strings.HasSuffix(text, ".pub") {
		return &Problem{"the name of a file where a key belongs: " + Quote(text), "paste the content of the .pub file"}
	}
	if strings.Contains(text, " ssh-") || strings.Contains(text, " ecdsa-") {
		return &Problem{"options before an SSH key", "give the key alone: type, base64, comment"}
	}
	return nil
}

func checkSSHKey(text string) *Problem {
	if strings.HasPrefix(text, ssh.InsecureKeyAlgoDSA+" ") {
		return &Problem{"a DSA key, which sshd does not accept", newKey}
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return &Problem{"not a public SSH key: " + Quote(text), "the base64 part is cut or damaged; paste the whole line of the .pub file"}
	}
	if kind := strings.Fields(text)[0]; kind != key.Type() {
		return &Problem{fmt.Sprintf("the key says %s before and %s inside its base64", kind, key.Type()), "paste the whole line of the .pub file"}
	}
	return weakSSHKey(key)
}

// weakSSHKey refuses what OpenSSH no longer takes or what is within reach of an attacker.
func weakSSHKey(key ssh.PublicKey) *Problem {
	if strings.Contains(key.Type(), "cert") {
		return &Problem{"a certificate where a public key belongs", "give the key itself, without -cert in its type"}
	}
	if wrapped, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := wrapped.CryptoPublicKey().(*rsa.PublicKey); ok && public.N.BitLen() < minRSA {
			return &Problem{fmt.Sprintf("an RSA key of %d bits; at least %d are needed", public.N.BitLen(), minRSA), newKey}
		}
	}
	return nil
}
