package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/digest"
)

var (
	// Debian policy 5.6.1: lower case letters, digits, plus, minus, period; at least two.
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	// Debian policy 5.6.12: [epoch:]upstream[-revision].
	packageVersion = regexp.MustCompile(`^([0-9]+:)?[0-9A-Za-z][0-9A-Za-z.+~:-]*$`)
	artifactName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)
	word           = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)
	h1Hash         = regexp.MustCompile(`^h1:[A-Za-z0-9+/]{43}=$`)
)

func matches(re *regexp.Regexp, what string) func(string) error {
	return func(s string) error {
		if !re.MatchString(s) {
			return fmt.Errorf("not %s: %q", what, s)
		}
		return nil
	}
}

func checkPackageName(s string) error { return matches(packageName, "a package name")(s) }
func checkVersion(s string) error     { return matches(packageVersion, "a package version")(s) }
func checkWord(s string) error        { return matches(word, "a plain word")(s) }
func checkArtifact(s string) error    { return matches(artifactName, "the name of an artifact")(s) }
func checkH1(s string) error          { return matches(h1Hash, "a Go module hash (h1:...)")(s) }

func checkArchive(s string) error {
	if s != ArchiveDebian && s != ArchiveSecurity {
		return fmt.Errorf("unknown archive %q (%s or %s)", s, ArchiveDebian, ArchiveSecurity)
	}
	return nil
}

func checkKind(s string) error {
	switch Kind(s) {
	case KindURL, KindGoModule, KindFile, KindImage:
		return nil
	}
	return fmt.Errorf("unknown kind %q (%s, %s, %s or %s)", s, KindURL, KindGoModule, KindFile, KindImage)
}

// checkPath refuses what would leave the archive or the module: a lock is read
// from a repository that others can write to.
func checkPath(s string) error {
	if !fs.ValidPath(s) || strings.ContainsAny(s, "\\\x00") {
		return fmt.Errorf("not a relative path without . and ..: %q", s)
	}
	return nil
}

func parseDigest(into *digest.Digest) func(string) error {
	return func(s string) (err error) {
		*into, err = digest.Parse(s)
		return err
	}
}

func parseDate(into *time.Time) func(string) error {
	return func(s string) error {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return errors.New("not a date such as 2026-01-02T03:04:05Z")
		}
		*into = t.UTC()
		return nil
	}
}
