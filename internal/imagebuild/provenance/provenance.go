// Package provenance writes where a build came from: an in-toto Statement (v1)
// with SLSA's provenance predicate (v1), naming the outputs, the profile and plan
// they were made from, every pinned input and the host programs that took part.
// The same inputs give the same bytes: it holds no times, no host and no user.
package provenance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
)

// Types of the document and its parts.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://slsa.dev/provenance/v1"
	// BuildType says how to read the parameters: docs/ARTIFACTS.md.
	BuildType = "https://github.com/slipway/slipway/imagebuild/v1"
	builderID = "https://github.com/slipway/slipway/cmd/imagebuild"
)

// Names of digests. A tree digest (artifact.TreeDigest) is not the SHA-256 of the
// file, so it must not go by that name.
const (
	plainDigest = "sha256"
	treeDigest  = "slipwayTreeSha256"
)

// Source is a file of the profile.
type Source struct {
	Name   string // as written on the command line or included, without directories of the host
	Digest digest.Digest
}

// Pin is an input that is fixed by digest.
type Pin struct {
	URI    string // "pkg:deb/debian/bash@5.2?arch=amd64", or where it was fetched from
	Name   string
	Digest digest.Digest
}

// Tool is a host program that took part.
type Tool struct {
	Name    string
	Version string
}

// Inputs is what the statement is made from.
type Inputs struct {
	Files   []artifact.File // all outputs except the provenance itself
	Profile []Source        // in the order they were merged
	Plan    digest.Digest
	Epoch   int64 // seconds
	Pins    []Pin
	Version string // of imagebuild
	Tools   []Tool
}

type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

// resource is in-toto's ResourceDescriptor.
type resource struct {
	Name        string            `json:"name,omitempty"`
	URI         string            `json:"uri,omitempty"`
	Digest      map[string]string `json:"digest,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType          string     `json:"buildType"`
		ExternalParameters parameters `json:"externalParameters"`
		Dependencies       []resource `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder builder `json:"builder"`
	} `json:"runDetails"`
}

type parameters struct {
	Profile []resource `json:"profile"`
	Plan    string     `json:"plan"`
	Epoch   int64      `json:"sourceDateEpoch"`
}

type builder struct {
	ID           string            `json:"id"`
	Version      map[string]string `json:"version"`
	Dependencies []resource        `json:"builderDependencies"`
}

// Encode writes the statement.
func Encode(in Inputs) ([]byte, error) {
	s := statement{Type: StatementType, Subject: subjects(in.Files), PredicateType: PredicateType}
	def := &s.Predicate.BuildDefinition
	def.BuildType = BuildType
	def.ExternalParameters = parameters{Profile: []resource{}, Plan: in.Plan.String(), Epoch: in.Epoch}
	for _, p := range in.Profile {
		def.ExternalParameters.Profile = append(def.ExternalParameters.Profile, resource{Name: p.Name, Digest: plain(p.Digest)})
	}
	def.Dependencies = []resource{}
	for _, p := range in.Pins {
		def.Dependencies = append(def.Dependencies, resource{Name: p.Name, URI: p.URI, Digest: plain(p.Digest)})
	}
	sortResources(def.Dependencies)
	s.Predicate.RunDetails.Builder = builder{ID: builderID, Version: map[string]string{"imagebuild": in.Version}, Dependencies: tools(in.Tools)}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	return out.Bytes(), nil
}

func subjects(files []artifact.File) []resource {
	out := []resource{}
	for _, f := range files {
		if f.Role != artifact.RoleProvenance {
			out = append(out, resource{Name: f.Name, Digest: digestSet(f)})
		}
	}
	sortResources(out)
	return out
}

func digestSet(f artifact.File) map[string]string {
	if f.Role == artifact.RoleDiskRaw {
		return map[string]string{treeDigest: f.Digest.Hex()}
	}
	return plain(f.Digest)
}

func plain(d digest.Digest) map[string]string {
	if d.IsZero() {
		return nil
	}
	return map[string]string{plainDigest: d.Hex()}
}

func tools(list []Tool) []resource {
	out := []resource{}
	for _, t := range list {
		out = append(out, resource{Name: t.Name, Annotations: map[string]string{"version": t.Version}})
	}
	sortResources(out)
	return out
}

func sortResources(list []resource) {
	slices.SortFunc(list, func(a, b resource) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.URI, b.URI)) })
}

// Check reads a statement and holds it against the index of the build.
func Check(data []byte, x artifact.Index) error {
	var s statement
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return fmt.Errorf("not a statement: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more after the end of the statement")
	}
	def := s.Predicate.BuildDefinition
	switch {
	case s.Type != StatementType || s.PredicateType != PredicateType || def.BuildType != BuildType:
		return fmt.Errorf("type is %q with %q and %q", s.Type, s.PredicateType, def.BuildType)
	case def.ExternalParameters.Plan != x.Plan.String():
		return fmt.Errorf("plan is %s, the index has %s", def.ExternalParameters.Plan, x.Plan)
	case def.ExternalParameters.Epoch != x.Epoch:
		return fmt.Errorf("epoch is %d, the index has %d", def.ExternalParameters.Epoch, x.Epoch)
	}
	return sameSubjects(s.Subject, subjects(x.Files))
}

func sameSubjects(have, want []resource) error {
	for i, w := range want {
		if i >= len(have) {
			return fmt.Errorf("subject %s is missing", w.Name)
		}
		if have[i].Name != w.Name {
			return fmt.Errorf("subject %d is %s, want %s", i, have[i].Name, w.Name)
		}
		for algorithm, value := range w.Digest {
			if have[i].Digest[algorithm] != value {
				return fmt.Errorf("subject %s has another %s digest than the index", w.Name, algorithm)
			}
		}
	}
	if len(have) > len(want) {
		return fmt.Errorf("subject %s is not in the index", have[len(want)].Name)
	}
	return nil
}
