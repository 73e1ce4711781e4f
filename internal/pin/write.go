package pin

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Marshal writes the lock as YAML with one package a line, so that a change of
// one package is a change of one line. The same lock gives the same bytes.
func (l *Lock) Marshal() []byte {
	var b strings.Builder
	b.WriteString("# Every outside input of this environment, fixed by digest.\n")
	b.WriteString("# Written by imagebuild pin; a change by hand is lost with the next run.\n")
	fmt.Fprintf(&b, "version: %d\n", FormatVersion)
	writeDebian(&b, &l.Debian)
	b.WriteString("artifacts:")
	if len(l.Artifacts) == 0 {
		b.WriteString(" []")
	}
	b.WriteByte('\n')
	for _, a := range l.Artifacts {
		writeArtifact(&b, a)
	}
	return []byte(b.String())
}

func writeDebian(b *strings.Builder, d *Debian) {
	fmt.Fprintf(b, "debian:\n  suite: %s\n  arch: %s\n", quote(d.Suite), quote(d.Arch))
	fmt.Fprintf(b, "  components: [%s]\n", strings.Join(quoteAll(d.Components), ", "))
	b.WriteString("  releases:\n")
	for _, r := range d.Releases {
		fmt.Fprintf(b, "    - {archive: %s, suite: %s, date: %s, sha256: %s}\n",
			r.Archive, quote(r.Suite), quote(r.Date.UTC().Format(time.RFC3339)), quote(r.Digest.Hex()))
	}
	b.WriteString("  sets:\n")
	for _, s := range d.Sets {
		fmt.Fprintf(b, "    %s:\n      wanted:\n", s.Name)
		for _, w := range s.Wanted {
			fmt.Fprintf(b, "        - %s\n", quote(w))
		}
		b.WriteString("      packages:\n")
		for _, p := range s.Packages {
			fmt.Fprintf(b, "        - {name: %s, version: %s, arch: %s, archive: %s, size: %d, sha256: %s, path: %s}\n",
				quote(p.Name), quote(p.Version), p.Arch, p.Archive, p.Size, quote(p.Digest.Hex()), quote(p.Path))
		}
	}
}

func writeArtifact(b *strings.Builder, a Artifact) {
	fmt.Fprintf(b, "  - name: %s\n    version: %s\n", a.Name, quote(a.Version))
	if a.For != "" {
		fmt.Fprintf(b, "    for: %s\n", a.For)
	}
	fmt.Fprintf(b, "    kind: %s\n    source: %s\n", a.Kind, quote(a.Source))
	if a.Subdir != "" {
		fmt.Fprintf(b, "    subdir: %s\n", quote(a.Subdir))
	}
	if a.H1 != "" {
		fmt.Fprintf(b, "    h1: %s\n", quote(a.H1))
	}
	if a.Unpinned != "" {
		fmt.Fprintf(b, "    unpinned: %s\n", quote(a.Unpinned))
		return
	}
	fmt.Fprintf(b, "    size: %d\n    sha256: %s\n", a.Size, quote(a.Digest.Hex()))
}

// quote makes a double-quoted scalar, so that no reader takes a version for a
// number or a digest for an exponent. Go's escapes are a subset of YAML's
// (YAML 1.2, 5.7) for what a lock holds.
func quote(s string) string { return strconv.Quote(s) }

func quoteAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return out
}
