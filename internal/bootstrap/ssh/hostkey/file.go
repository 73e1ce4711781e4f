package hostkey

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

// FileName is the file in the state directory that holds what was trusted by hand.
const FileName = "known_hosts"

// header tells whoever opens the file what it is.
const header = "# Host keys trusted by: bootstrap trust NODE\n"

// Read returns the keys that the known_hosts file at path (sshd(8)) has for a node,
// by its name. A file that is not there knows nobody.
func Read(path, node string) ([]string, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	var out []string
	err = each(path, data, func(names []string, key ssh.PublicKey, _ string) {
		if slices.Contains(names, node) {
			out = append(out, line(key))
		}
	})
	return out, err
}

func read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading trusted host keys: %w", err)
	}
	return data, nil
}

// each goes through the entries of a known_hosts file.
func each(path string, data []byte, do func(names []string, key ssh.PublicKey, text string)) error {
	for n, text := range bytes.Split(data, []byte("\n")) {
		text = bytes.TrimSpace(text)
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		_, names, key, _, _, err := ssh.ParseKnownHosts(text)
		if err != nil && !errors.Is(err, io.EOF) {
			return diag.WithHint(fmt.Errorf("%s:%d: not an entry of known_hosts", path, n+1), "correct or remove the line")
		}
		do(names, key, string(text))
	}
	return nil
}

// ErrOther says that a node is known by other keys than the ones to be trusted.
var ErrOther = errors.New("other keys are trusted already")

// Trust writes into the known_hosts file at path (made 0600) that a node at an
// address (host:port) has these keys. The file also works as ssh's UserKnownHostsFile. When the
// node is known by another key, it must be told to replace: that is either a
// reinstalled node or somebody in its place.
func Trust(path, node, address string, keys []string, replace bool) error {
	if len(keys) == 0 {
		return fmt.Errorf("no host key of %s to trust", node)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	return locked(filepath.Dir(path), func() error { return trust(path, node, address, keys, replace) })
}

func trust(path, node, address string, keys []string, replace bool) error {
	data, err := read(path)
	if err != nil {
		return err
	}
	known, err := Read(path, node)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(known, func(k string) bool { return !Contains(keys, k) }) && !replace {
		return exit.With(exit.Refused, diag.WithHint(fmt.Errorf("%s: %w", node, ErrOther),
			"if it was reinstalled since, compare the fingerprint with its console and trust it again with --replace"))
	}
	var out strings.Builder
	out.WriteString(header)
	err = each(path, data, func(names []string, _ ssh.PublicKey, text string) {
		if !slices.Contains(names, node) {
			out.WriteString(text + "\n")
		}
	})
	if err != nil {
		return err
	}
	parsed, err := Parse(keys)
	if err != nil {
		return err
	}
	for _, key := range sorted(parsed) {
		fmt.Fprintf(&out, "%s,%s %s\n", node, knownhosts.Normalize(address), line(key))
	}
	if err := private(path, []byte(out.String())); err != nil {
		return fmt.Errorf("writing trusted host keys: %w", err)
	}
	return nil
}

// private writes a file that only its owner can change or read, whatever was there
// before: renameio.WriteFile would take over the permissions of an older one.
func private(path string, data []byte) error {
	f, err := renameio.NewPendingFile(path, renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// locked runs do while no other process changes the file. The lock dies with us.
func locked(dir string, do func() error) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("locking %s: %w", dir, err)
	}
	defer d.Close()
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", dir, err)
	}
	return do()
}
