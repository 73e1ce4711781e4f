package aptresolve

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/pin"
)

// releases records which signed indexes were used.
func (r *root) releases() ([]pin.Release, error) {
	list := r.suites()
	for i := range list {
		s := &list[i]
		data, err := os.ReadFile(r.inRelease(*s))
		if err != nil {
			return nil, fmt.Errorf("reading release of %s: %w", s.Suite, err)
		}
		s.Digest = digest.Of(data)
		if s.Date, err = releaseDate(data); err != nil {
			return nil, fmt.Errorf("release of %s: %w", s.Suite, err)
		}
	}
	return list, nil
}

// inRelease is where apt keeps the file: the URI without its scheme, with
// underscores escaped and slashes turned into underscores (apt's URItoFileName).
func (r *root) inRelease(s pin.Release) string {
	_, rest, _ := strings.Cut(r.req.Mirrors.Base(s.Archive), "://")
	name := strings.NewReplacer("_", "%5f", "/", "_", "~", "%7e").Replace(rest + "/dists/" + s.Suite + "/InRelease")
	return filepath.Join(r.path("state/lists"), name)
}

// releaseDate reads the Date field, always in UTC (Debian repository format, "Date").
func releaseDate(data []byte) (time.Time, error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "Date: "); ok {
			t, err := time.Parse("Mon, 2 Jan 2006 15:04:05 MST", v)
			return t.UTC(), err
		}
	}
	return time.Time{}, fmt.Errorf("no Date field")
}
