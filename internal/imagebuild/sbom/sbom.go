// Package sbom writes the bill of materials of a build: every Debian package of
// the root file system and every Go module that is linked into our own binaries,
// as CycloneDX JSON. The same inputs give the same bytes.
package sbom

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/disklayout"
)

// version of CycloneDX that is written: the newest that common scanners read.
const version = cdx.SpecVersion1_6

// Package is one installed Debian package.
type Package struct {
	Name    string
	Version string
	Arch    string
	Digest  digest.Digest // of the .deb
}

// Binary is one of our own Go programs inside the image.
type Binary struct {
	Name string // how the component is called, "nodeinit"
	Path string // on the build host
}

// File is an input that is no Debian package: a chart, a program, container images.
type File struct {
	Name    string
	Version string
	URL     string // package URL, or where it comes from; may be ""
	Digest  digest.Digest
}

// Inputs is what a bill of materials is made from.
type Inputs struct {
	Name     string        // of the image
	Suite    string        // of Debian, "trixie"
	Plan     digest.Digest // of the build
	Epoch    int64         // time of the document, seconds
	Packages []Package
	Binaries []Binary
	Files    []File
}

// Encode writes the document.
func Encode(in Inputs) ([]byte, error) {
	image := cdx.Component{
		BOMRef: "image", Type: cdx.ComponentTypeOS, Name: in.Name, Version: in.Plan.Short(),
		Description: "bootable appliance image; the version is the beginning of the plan's digest",
	}
	d := document{direct: map[string]bool{}}
	for _, p := range in.Packages {
		d.add(debian(p, in.Suite))
	}
	for _, f := range in.Files {
		d.add(payload(f))
	}
	for _, b := range in.Binaries {
		if err := d.binary(b); err != nil {
			return nil, fmt.Errorf("bill of materials: %w", err)
		}
	}
	d.finish()
	bom := cdx.NewBOM()
	bom.SerialNumber = Serial(in.Plan)
	bom.Metadata = &cdx.Metadata{Timestamp: timestamp(in.Epoch), Component: &image}
	bom.Components = &d.components
	d.dependencies = append([]cdx.Dependency{{Ref: image.BOMRef, Dependencies: sorted(d.direct)}}, d.dependencies...)
	bom.Dependencies = &d.dependencies

	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, version); err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

// Serial is the serial number of the bill of materials of a plan's build. It
// would be random elsewhere; here two builds of a plan are the same thing.
func Serial(plan digest.Digest) string {
	return "urn:uuid:" + strings.ToLower(disklayout.GUID(plan.String(), "sbom"))
}

func timestamp(epoch int64) string { return time.Unix(epoch, 0).UTC().Format(time.RFC3339) }

// document collects components, each once, and who depends on whom.
type document struct {
	components   []cdx.Component
	dependencies []cdx.Dependency
	direct       map[string]bool // what the image itself consists of
	seen         map[string]bool
}

func (d *document) add(c cdx.Component) { d.direct[c.BOMRef] = true; d.part(c) }

func (d *document) part(c cdx.Component) {
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	if !d.seen[c.BOMRef] {
		d.seen[c.BOMRef] = true
		d.components = append(d.components, c)
	}
}

func (d *document) finish() {
	slices.SortFunc(d.components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	slices.SortFunc(d.dependencies, func(a, b cdx.Dependency) int { return cmp.Compare(a.Ref, b.Ref) })
}

// URL is the package URL (purl) of the package in a release of Debian, which may be "".
func (p Package) URL(suite string) string {
	purl := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", escape(p.Name), escape(p.Version), escape(p.Arch))
	if suite != "" {
		purl += "&distro=" + escape(suite)
	}
	return purl
}

func debian(p Package, suite string) cdx.Component {
	purl := p.URL(suite)
	return cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: purl, Hashes: hashes(p.Digest),
	}
}

// payload is a file as a component. A package URL goes where scanners look for one;
// any other address is where it is distributed.
func payload(f File) cdx.Component {
	c := cdx.Component{BOMRef: "payload:" + f.Name, Type: cdx.ComponentTypeFile, Name: f.Name, Version: f.Version, Hashes: hashes(f.Digest)}
	switch {
	case strings.HasPrefix(f.URL, "pkg:"):
		c.PackageURL = f.URL
	case f.URL != "":
		c.ExternalReferences = &[]cdx.ExternalReference{{URL: f.URL, Type: cdx.ERTypeDistribution}}
	}
	return c
}

func hashes(d digest.Digest) *[]cdx.Hash {
	if d.IsZero() {
		return nil
	}
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: d.Hex()}}
}

// escape is the percent-encoding of the package URL specification, which leaves
// letters, digits and .-_~: alone.
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(".-_~:", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func sorted(set map[string]bool) *[]string {
	out := make([]string, 0, len(set))
	for s := range set {
		out = append(out, s)
	}
	slices.Sort(out)
	return &out
}
