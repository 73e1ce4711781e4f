package chart

import (
	"bytes"
	"fmt"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

// Effective are the chart's own values with those of the release over them: what its
// templates see.
func Effective(r Release) (map[string]any, error) {
	c, err := r.load()
	if err != nil {
		return nil, err
	}
	given, err := values(r.Values)
	if err != nil {
		return nil, fmt.Errorf("values of release %s: %w", r, err)
	}
	all, err := chartutil.CoalesceValues(c, given)
	if err != nil {
		return nil, fmt.Errorf("values of release %s: %w", r, err)
	}
	return values(all)
}

// Identity is the name and version that the chart of a release gives itself.
func Identity(r Release) (name, version string, err error) {
	c, err := r.load()
	if err != nil {
		return "", "", err
	}
	return c.Name(), c.Metadata.Version, nil
}

// Files are the files of a release's chart, by their paths in it.
func Files(r Release) (map[string][]byte, error) {
	packed := r.Archive
	if !bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		var err error
		if packed, err = pack(r.Archive); err != nil {
			return nil, fmt.Errorf("chart of release %s: %w", r, err)
		}
	}
	files, err := loader.LoadArchiveFiles(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("chart of release %s: %w", r, err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		out[f.Name] = f.Data
	}
	return out, nil
}
