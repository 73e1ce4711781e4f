package pxed

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/diag"
)

// ReadToken reads the operator's token. A file that others can read is refused:
// whoever has the token can have disks overwritten.
func ReadToken(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", unreadable(path, err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return "", diag.WithHint(fmt.Errorf("token: others can read %s (mode %04o)", path, st.Mode().Perm()), "chmod 600 "+path+", and have a new one made if somebody may have read it")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", unreadable(path, err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < 16 {
		return "", diag.WithHint(fmt.Errorf("token: %s holds no token", path), "remove it, pxed serve makes a new one")
	}
	return token, nil
}

// unreadable says what to do about a token that cannot be read.
func unreadable(path string, err error) error {
	hint := "pxed serve makes it on its first start; from another machine, copy what pxed token prints there into a file (mode 0600), and name it with --token-file"
	if errors.Is(err, fs.ErrPermission) {
		hint = "run as root or as the user who runs pxed, or name another file with --token-file"
	}
	return diag.WithHint(fmt.Errorf("token: %w", err), hint)
}

// EnsureToken reads the token, or makes it when there is none.
func EnsureToken(path string) (string, error) {
	token, err := ReadToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", diag.WithHint(fmt.Errorf("token: %w", err), "run as root, or name another directory with --state")
	}
	token = hex.EncodeToString(raw)
	if err := renameio.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return token, nil
}
