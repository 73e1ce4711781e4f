// Package support writes a bundle that a person can send to whoever helps them: what
// the nodes, the cluster and the tool know about themselves, without secrets.
//
// What is known to be a secret is replaced by the caller's redactor; what looks like
// one is replaced here, because a log may hold secrets that this tool never had.
package support

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"time"

	"github.com/slipway/slipway/internal/sequence"
)

// Source is one file of the bundle.
type Source struct {
	Name string // its path in the bundle
	Read func(context.Context) ([]byte, error)
}

// Bundle says how the files are collected.
type Bundle struct {
	Sources []Source
	Redact  func(string) string // known secrets
	Each    time.Duration       // limit for one source
	Most    int                 // bytes of one file; of a longer one the end is kept
	Now     time.Time           // of all files
}

// Result is what came of it.
type Result struct {
	Files   int      `json:"files"`
	Missing []string `json:"missing"` // sources that could not be read, with the reason
}

// Write collects the sources, one after the other, and writes a gzipped tar archive.
// A source that fails costs its own file only: the reason stands in missing.txt.
func (b Bundle) Write(ctx context.Context, w io.Writer, tell sequence.Tell) (Result, error) {
	zip := gzip.NewWriter(w)
	tape := tar.NewWriter(zip)
	var r Result
	missing := ""
	for _, s := range b.Sources {
		tell(s.Name)
		data, err := b.read(ctx, s)
		if err := context.Cause(ctx); err != nil {
			return r, err
		}
		if err != nil {
			reason := b.Clean(fmt.Sprintf("%s: %v", s.Name, err))
			r.Missing = append(r.Missing, reason)
			missing += reason + "\n"
		}
		if len(data) == 0 {
			continue
		}
		if err := b.add(tape, s.Name, data); err != nil {
			return r, err
		}
		r.Files++
	}
	if missing != "" {
		if err := b.add(tape, "missing.txt", []byte(missing)); err != nil {
			return r, err
		}
	}
	if err := tape.Close(); err != nil {
		return r, fmt.Errorf("writing support bundle: %w", err)
	}
	if err := zip.Close(); err != nil {
		return r, fmt.Errorf("writing support bundle: %w", err)
	}
	return r, nil
}

func (b Bundle) read(ctx context.Context, s Source) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, b.Each)
	defer cancel()
	data, err := s.Read(ctx)
	if len(data) > b.Most {
		data = append([]byte(fmt.Sprintf("... %d bytes before this are left out\n", len(data)-b.Most)), data[len(data)-b.Most:]...)
	}
	return []byte(b.Clean(string(data))), err
}

func (b Bundle) add(tape *tar.Writer, name string, data []byte) error {
	h := &tar.Header{Name: path.Join("support", name), Mode: 0o600, Size: int64(len(data)), ModTime: b.Now, Format: tar.FormatPAX}
	if err := tape.WriteHeader(h); err != nil {
		return fmt.Errorf("writing support bundle: %w", err)
	}
	if _, err := tape.Write(data); err != nil {
		return fmt.Errorf("writing support bundle: %w", err)
	}
	return nil
}

// Clean takes secrets out of text: those that are known, and what has their form.
func (b Bundle) Clean(text string) string {
	text = b.Redact(text)
	for _, s := range shapes() {
		text = s.form.ReplaceAllString(text, s.with)
	}
	return text
}

// shape is what a kind of secret looks like.
type shape struct {
	form *regexp.Regexp
	with string
}

func shapes() []shape {
	return []shape{
		// PEM (RFC 7468), also on one line with \n between.
		{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----`), "<redacted private key>"},
		// k3s's tokens: K10, the digest of the authority, and the secret part (k3s docs, "token").
		{regexp.MustCompile(`K10[0-9a-f]{64}::[^\s"']+`), "<redacted token>"},
		{regexp.MustCompile(`AGE-SECRET-KEY-[A-Z0-9-]+`), "<redacted age key>"},
		// JSON Web Tokens, as service accounts have them (RFC 7519).
		{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+`), "<redacted token>"},
		{regexp.MustCompile(`(?i)\b(bearer|basic) [A-Za-z0-9+/=._-]{8,}`), "$1 <redacted>"},
		// Fields of kubeconfigs and of configurations.
		{regexp.MustCompile(`(?i)\b(client-key-data|[a-z-]*token|[a-z]*password|passwd|secret[_-]?key|private[_-]?key)(["']?\s*[:=]\s*)["']?[^\s"',}]{4,}["']?`), "$1$2<redacted>"},
	}
}
