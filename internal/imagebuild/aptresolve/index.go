package aptresolve

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/pin"
)

// lookup finds what the signed indexes say about the chosen files.
func (r *root) lookup(ctx context.Context, want []chosen) (map[chosen]pin.Package, error) {
	wanted := make(map[chosen]bool, len(want))
	for _, c := range want {
		wanted[c] = true
	}
	found := make(map[chosen]pin.Package, len(want))
	err := r.eachIndex(ctx, func(archive string, f io.Reader) error {
		return eachStanza(f, func(s stanza) error {
			c := chosen{archive: archive, path: s["Filename"]}
			if !wanted[c] {
				return nil
			}
			p, err := s.pkg(archive)
			found[c] = p
			return err
		})
	})
	return found, err
}

// eachIndex opens every Packages file that apt has verified.
func (r *root) eachIndex(ctx context.Context, do func(archive string, f io.Reader) error) error {
	out, _, err := r.run(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(FILENAME)", "Created-By: Packages")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		uri, name, _ := strings.Cut(line, " ")
		archive := pin.ArchiveDebian
		if strings.TrimSuffix(uri, "/") == r.req.Mirrors.Security {
			archive = pin.ArchiveSecurity
		}
		if err := withFile(name, func(f io.Reader) error { return do(archive, f) }); err != nil {
			return fmt.Errorf("reading package index: %w", err)
		}
	}
	return nil
}

func withFile(name string, do func(io.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(f)
}

// stanza is one package in an index: the fields that a lock needs.
type stanza map[string]string

func (s stanza) pkg(archive string) (pin.Package, error) {
	p := pin.Package{Name: s["Package"], Version: s["Version"], Arch: s["Architecture"], Archive: archive, Path: s["Filename"]}
	var err error
	if p.Size, err = strconv.ParseInt(s["Size"], 10, 64); err != nil {
		return p, fmt.Errorf("size of %s: %w", p.Name, err)
	}
	if p.Digest, err = digest.Parse(s["SHA256"]); err != nil {
		return p, fmt.Errorf("digest of %s: %w", p.Name, err)
	}
	return p, nil
}

// eachStanza reads an index (Debian policy 5.1: fields, continuation lines that
// start with a blank, stanzas separated by empty lines). The stanza is reused.
func eachStanza(f io.Reader, do func(stanza) error) error {
	s := stanza{}
	flush := func() error {
		if len(s) == 0 {
			return nil
		}
		err := do(s)
		clear(s)
		return err
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 64<<10), 4<<20) // Provides of some packages are one very long line
	for lines.Scan() {
		line := lines.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			if err := flush(); err != nil {
				return err
			}
			continue
		}
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		switch string(key) { // a continuation line starts with a blank and equals none of these
		case "Package", "Version", "Architecture", "Filename", "Size", "SHA256":
			s[string(key)] = string(bytes.TrimSpace(value))
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return flush()
}
