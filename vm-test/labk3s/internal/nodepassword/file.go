package nodepassword

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Own is the password of this node, from the file "password" of a directory. It is
// made when it is not there.
func Own(dir string) (string, error) {
	name := File(dir)
	text, err := os.ReadFile(name)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return strings.TrimSpace(string(text)), err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	b := make([]byte, 16)
	rand.Read(b) // it cannot fail
	password := hex.EncodeToString(b)
	return password, os.WriteFile(name, []byte(password+"\n"), 0o600)
}

// File is the file in which a node keeps its password.
func File(dir string) string { return filepath.Join(dir, "password") }
