package aptresolve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
)

// The ways in which resolving fails. Callers need not tell them apart; tests do.
var (
	ErrNetwork   = errors.New("the Debian archive cannot be reached")
	ErrSignature = errors.New("the archive's signature is not good")
	ErrExpired   = errors.New("the archive's index is out of date")
	ErrSuite     = errors.New("the archive has no such suite")
	ErrIndex     = errors.New("the archive's index is not what its signature says")
	ErrSpace     = errors.New("no space left for the package indexes")
	ErrUnknown   = errors.New("unknown package")
	ErrConflict  = errors.New("the packages do not fit together")
)

var noComponent = regexp.MustCompile(`doesn't have the component`)

// explainUpdate turns what apt-get update said into one sentence. The order
// matters: a bad signature is reported beside network trouble, and counts more.
func (r *root) explainUpdate(said string, err error) error {
	for _, class := range []struct {
		is    error
		words *regexp.Regexp
		hint  string
	}{
		{ErrSpace, regexp.MustCompile(`No space left on device|not enough (free )?space`),
			"free some space in " + filepath.Dir(r.dir) + ", or set TMPDIR to another place; about 100 MiB are needed"},
		{ErrSignature, regexp.MustCompile(`NO_PUBKEY|BADSIG|EXPKEYSIG|REVKEYSIG|not signed|invalid signature|Clearsigned file|couldn't be verified|NODATA`),
			"the mirror may be broken or tampered with; try another one, and see that package debian-archive-keyring is current (keyring: " + r.req.Keyring + ")"},
		{ErrExpired, regexp.MustCompile(`is expired|not valid yet`),
			"check this machine's clock; else the mirror no longer follows the archive"},
		{ErrSuite, regexp.MustCompile(`does not have a Release file|404 +Not Found|doesn't have the component`),
			"check debian.suite, debian.components and debian.mirror in the profile"},
		{ErrIndex, regexp.MustCompile(`Hash Sum mismatch|unexpected size`),
			"the mirror may be in the middle of an update: try again in some minutes, or another mirror"},
		{ErrNetwork, regexp.MustCompile(`Could not resolve|Temporary failure|[Cc]ould not connect|[Cc]onnection (failed|refused|timed out)|Cannot initiate|Unable to connect|Network is unreachable|timed out`),
			"check the network and the proxy variables, or set debian.mirror in the profile or " + EnvMirror},
	} {
		if class.words.MatchString(said) {
			return diag.WithHint(fmt.Errorf("%w: %s", class.is, firstLine(said, class.words)), class.hint)
		}
	}
	return fmt.Errorf("reading the package indexes: %w", err)
}

// firstLine is the line that matches, without apt's "E: " and "W: ".
func firstLine(said string, words *regexp.Regexp) string {
	for line := range strings.Lines(said) {
		if words.MatchString(line) {
			line = strings.TrimSpace(line)
			if len(line) > 3 && line[1] == ':' {
				line = strings.TrimSpace(line[2:])
			}
			return line
		}
	}
	return ""
}

var unknownPackage = regexp.MustCompile(`(?:Unable to locate package|Couldn't find any package by (?:glob|regex)|Package) '?([a-z0-9][a-z0-9+.-]*)'?(?: has no installation candidate)?$`)

// explainInstall names every unknown package at once, each with the names that
// come nearest to it.
func (r *root) explainInstall(ctx context.Context, out []byte, said string, err error) error {
	var unknown []string
	for line := range strings.Lines(said) {
		if m := unknownPackage.FindStringSubmatch(strings.TrimSpace(line)); m != nil && strings.HasPrefix(line, "E:") && !slices.Contains(unknown, m[1]) {
			unknown = append(unknown, m[1])
		}
	}
	if len(unknown) == 0 {
		if why := unmet(string(out)); why != "" {
			return diag.WithHint(fmt.Errorf("%w: %s", ErrConflict, why), "see system.packages in the profile")
		}
		return fmt.Errorf("choosing packages: %w", err)
	}
	near, nerr := r.nearest(ctx, unknown)
	if nerr != nil {
		return nerr
	}
	hint := fmt.Sprintf("%s (%s) has no package of this name; see system.packages in the profile", r.req.Suite, strings.Join(r.req.Components, ", "))
	if len(near) > 0 {
		hint = "did you mean " + strings.Join(near, ", ") + "? " + hint
	}
	return diag.WithHint(fmt.Errorf("%w: %s", ErrUnknown, strings.Join(unknown, ", ")), hint)
}

// unmet is what apt says on standard output about dependencies, on one line.
func unmet(out string) string {
	_, list, ok := strings.Cut(out, "unmet dependencies:")
	if !ok {
		return ""
	}
	return strings.Join(strings.Fields(list), " ")
}

// nearest finds, for each name, the package name with the smallest edit
// distance, if that is at most 3.
func (r *root) nearest(ctx context.Context, names []string) ([]string, error) {
	type candidate struct {
		name     string
		distance int
	}
	best := make([]candidate, len(names))
	for i := range best {
		best[i].distance = 4
	}
	err := r.eachIndex(ctx, func(_ string, f io.Reader) error {
		return eachStanza(f, func(s stanza) error {
			for i, name := range names {
				if d := distance(name, s["Package"], best[i].distance); d < best[i].distance {
					best[i] = candidate{s["Package"], d}
				}
			}
			return nil
		})
	})
	var out []string
	for _, b := range best {
		if b.name != "" {
			out = append(out, b.name)
		}
	}
	return out, err
}

// distance is the Levenshtein distance of a and b, or limit when it is not below it.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); max(d, -d) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
		if slices.MinFunc(row, cmp.Compare[int]) >= limit {
			return limit
		}
	}
	return min(row[len(b)], limit)
}
