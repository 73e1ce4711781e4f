// Package pin fixes every outside input of a build by digest: what a profile
// wants (Wanted) is resolved once, written to a lock beside the profile's
// overlay, and from then on only the lock decides what is fetched and built.
package pin

import (
	"path"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/digest"
)

// FormatVersion is the version of the lock's format that this package writes
// and the only one it reads.
const FormatVersion = 1

// The package sets of a lock.
const (
	SetRootfs  = "rootfs"  // everything in the root file system, with all dependencies
	SetKernel  = "kernel"  // the one kernel image, without dependencies
	SetNetboot = "netboot" // the network boot loaders, without dependencies
)

// The archives that packages come from. Where they are is decided at run time:
// a lock names no host, so that it serves behind every mirror.
const (
	ArchiveDebian   = "debian"
	ArchiveSecurity = "debian-security"
)

// Lock is everything from outside that a build may use.
type Lock struct {
	Debian    Debian     `json:"debian"`
	Artifacts []Artifact `json:"artifacts"` // sorted by name
}

// Debian is what the lock fixes of the distribution.
type Debian struct {
	Suite      string    `json:"suite"`
	Arch       string    `json:"arch"`
	Components []string  `json:"components"` // in the profile's order
	Releases   []Release `json:"releases"`   // the signed indexes that the packages were found in
	Sets       []Set     `json:"sets"`       // sorted by name
}

// Release is one signed index of an archive at the time of resolving.
type Release struct {
	Archive string        `json:"archive"` // ArchiveDebian or ArchiveSecurity
	Suite   string        `json:"suite"`   // as under dists/: trixie, trixie-updates, trixie-security
	Date    time.Time     `json:"date"`    // Date field of InRelease, UTC
	Digest  digest.Digest `json:"sha256"`  // of InRelease
}

// Set is a named list of packages and the names it was resolved from.
type Set struct {
	Name     string    `json:"name"`
	Wanted   []string  `json:"wanted"`   // sorted
	Packages []Package `json:"packages"` // sorted by name
}

// Package is one binary package.
type Package struct {
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Arch    string        `json:"arch"` // amd64 or all
	Archive string        `json:"archive"`
	Path    string        `json:"path"` // below the archive's base, not URL-escaped
	Size    int64         `json:"size"` // bytes
	Digest  digest.Digest `json:"sha256"`
}

// Kind says how an artifact is fetched.
type Kind string

// The kinds of artifacts.
const (
	KindURL      Kind = "url"      // one file behind an http or https URL
	KindGoModule Kind = "gomodule" // a directory or file of a Go module, verified by the module's h1 hash
	KindFile     Kind = "file"     // a file on this machine, relative to the profile
	KindImage    Kind = "image"    // a container image of a registry, for linux/amd64
)

// Artifact is one input that is not a Debian package. The digest of a directory
// out of a Go module is that of its deterministic tar (see fetch); the digest of an
// image that of its manifest, which names everything else by digest.
type Artifact struct {
	Name     string        `json:"name"`
	Version  string        `json:"version"`
	For      string        `json:"for,omitempty"` // the artifact whose content asks for this one; "" for what the profile asks for
	Kind     Kind          `json:"kind"`
	Source   string        `json:"source"`             // URL, module@version, path, or image reference
	Subdir   string        `json:"subdir,omitempty"`   // inside the module
	H1       string        `json:"h1,omitempty"`       // hash of the module zip as go.sum has it
	Size     int64         `json:"size,omitempty"`     // bytes; of an image, with its layers
	Digest   digest.Digest `json:"sha256,omitzero"`    // zero while unpinned
	Unpinned string        `json:"unpinned,omitempty"` // why there is no digest; "" when there is one
}

// Set returns the named set, or nil.
func (l *Lock) Set(name string) *Set {
	for i := range l.Debian.Sets {
		if l.Debian.Sets[i].Name == name {
			return &l.Debian.Sets[i]
		}
	}
	return nil
}

// Artifact returns the named artifact, or nil.
func (l *Lock) Artifact(name string) *Artifact {
	for i := range l.Artifacts {
		if l.Artifacts[i].Name == name {
			return &l.Artifacts[i]
		}
	}
	return nil
}

// Epoch is the time of the newest archive index: the time stamp of everything
// that is built from this lock.
func (l *Lock) Epoch() time.Time {
	var newest time.Time
	for _, r := range l.Debian.Releases {
		if r.Date.After(newest) {
			newest = r.Date
		}
	}
	return newest
}

// Size is the number of bytes that the packages of a set have together.
func (s *Set) Size() int64 {
	var n int64
	for _, p := range s.Packages {
		n += p.Size
	}
	return n
}

// Path is where the lock of a profile lies: profiles/lab.lock beside
// profiles/lab.yaml.
func Path(profile string) string { return strings.TrimSuffix(profile, path.Ext(profile)) + ".lock" }
