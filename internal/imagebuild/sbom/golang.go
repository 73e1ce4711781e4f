package sbom

import (
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/slipway/slipway/internal/digest"
)

// binary adds a Go program and the modules that its build information names.
func (d *document) binary(b Binary) error {
	info, err := buildinfo.ReadFile(b.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Name, err)
	}
	sum, err := fileDigest(b.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Name, err)
	}
	program := cdx.Component{
		BOMRef: "binary:" + b.Name, Type: cdx.ComponentTypeApplication, Name: b.Name, Version: info.Main.Version, Hashes: hashes(sum),
	}
	d.add(program)
	needs := map[string]bool{}
	for _, m := range append(info.Deps, standardLibrary(info.GoVersion)) {
		c := module(m)
		needs[c.BOMRef] = true
		d.part(c)
	}
	d.dependencies = append(d.dependencies, cdx.Dependency{Ref: program.BOMRef, Dependencies: sorted(needs)})
	return nil
}

// standardLibrary is the name under which vulnerability databases know it.
func standardLibrary(goVersion string) *debug.Module {
	version, _, _ := strings.Cut(strings.TrimPrefix(goVersion, "go"), " ")
	return &debug.Module{Path: "stdlib", Version: version}
}

func module(m *debug.Module) cdx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	segments := strings.Split(strings.ToLower(m.Path), "/")
	for i, s := range segments {
		segments[i] = escape(s)
	}
	purl := "pkg:golang/" + strings.Join(segments, "/")
	if m.Version != "" {
		purl += "@" + escape(m.Version)
	}
	c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl}
	if m.Sum != "" {
		// A hash of a listing, not of a file: no place for it among the hashes.
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

func fileDigest(path string) (digest.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return digest.Digest{}, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return digest.Digest{}, err
	}
	return digest.FromHash(h), nil
}
