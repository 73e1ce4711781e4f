// Package profilefile reads profiles from disk: an overlay and, beside it, the
// base that it extends.
package profilefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/profile"
)

// Load reads the environment at path: an overlay and its base. A base alone is
// refused, because nothing can be built from it. Findings are a *diag.Error.
func Load(path string) (*profile.Profile, error) {
	p, err := Check(path)
	if err != nil {
		return nil, err
	}
	if p.Base {
		err := fmt.Errorf("%s is a base, not an environment", path)
		return nil, exit.With(exit.Usage, diag.WithHint(err, "name an overlay that extends it, such as "+filepath.Join(filepath.Dir(path), "lab.yaml")))
	}
	return p, nil
}

// Check reads the profile at path: an overlay and its base, or a base alone.
func Check(path string) (*profile.Profile, error) {
	main, err := read(path, "profiles are YAML files, such as profiles/lab.yaml")
	if err != nil {
		return nil, err
	}
	name, err := profile.Extends(main)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return profile.Parse(main)
	}
	base, err := read(filepath.Join(filepath.Dir(path), name), path+" extends it: correct extends, or put the base beside it")
	if err != nil {
		return nil, err
	}
	return profile.Parse(base, main)
}

// read reads one file of at most profile.MaxSize bytes, and one byte more, so
// that the parser sees that it is too large.
func read(path, hint string) (profile.Source, error) {
	fail := func(err error) (profile.Source, error) {
		return profile.Source{}, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("reading profile: %w", err), hint))
	}
	// A FIFO or a terminal would never end; look before opening.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(fmt.Errorf("there is no file %s", path))
	case err != nil:
		return fail(err)
	case !info.Mode().IsRegular():
		return fail(fmt.Errorf("%s is not a file", path))
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, profile.MaxSize+1))
	if err != nil {
		return fail(err)
	}
	return profile.Source{Name: path, Data: data}, nil
}
