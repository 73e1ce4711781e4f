// Package fluxsync decides what Flux follows: the git source, the Kustomization of
// this cluster's directory with its decryption, and the Secrets that both read.
//
// The same objects belong into the repository itself (what gitops-init writes), so
// that Flux keeps them from then on and changes nothing when it first sees them.
package fluxsync

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// Names of what is made. Flux's own installer uses the first for everything.
const (
	Namespace = "flux-system"
	Name      = "flux-system" // of the source, the Kustomization and the source's Secret
	AgeSecret = "sops-age"    // what decrypts
	AgeKey    = "age.agekey"  // kustomize-controller reads every key that ends so
)

// Keys of the source's Secret, for ssh:// and for https://.
const (
	KeyIdentity   = "identity"     // private key
	KeyPublic     = "identity.pub" // its public half
	KeyKnownHosts = "known_hosts"
	KeyUsername   = "username"
	KeyPassword   = "password" // or token
	KeyBearer     = "bearerToken"
	KeyCA         = "ca.crt"
)

// Options say what of the source is not in the profile.
type Options struct {
	// Private sources are read with the Secret called Name. One over ssh always is.
	Private bool
	// Suspend keeps the Kustomization from being applied: before the hand-over the
	// source is fetched, and nothing more.
	Suspend bool
}

// Objects are the source and the Kustomization of a cluster; none when its profile
// names no repository.
func Objects(c cluster.Cluster, o Options) []map[string]any {
	f := c.Flux
	if f.URL == "" {
		return nil
	}
	source := map[string]any{
		"interval": "1m0s",
		"timeout":  "1m0s",
		"url":      f.URL,
		"ref":      map[string]any{"branch": f.Branch},
	}
	if o.Private || SSH(c) {
		source["secretRef"] = map[string]any{"name": Name}
	}
	sync := map[string]any{
		"interval":   "10m0s",
		"path":       "./" + strings.TrimPrefix(f.Path, "./"),
		"prune":      true,
		"sourceRef":  map[string]any{"kind": "GitRepository", "name": Name},
		"decryption": map[string]any{"provider": "sops", "secretRef": map[string]any{"name": AgeSecret}},
	}
	if o.Suspend {
		sync["suspend"] = true
	}
	return []map[string]any{
		object("source.toolkit.fluxcd.io/v1", "GitRepository", Name, source),
		object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", Name, sync),
	}
}

// SSH reports whether the source is read over ssh, and needs a deploy key and known
// hosts.
func SSH(c cluster.Cluster) bool { return strings.HasPrefix(c.Flux.URL, "ssh://") }

func object(version, kind, name string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": Namespace}, "spec": spec}
}

// Secret is one of the two Secrets, by name, with its values by key. Empty values are
// left out.
func Secret(name string, values map[string][]byte) map[string]any {
	data := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if len(values[key]) > 0 {
			data[key] = base64.StdEncoding.EncodeToString(values[key])
		}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{"name": name, "namespace": Namespace}, "data": data,
	}
}

// MissingKeys are the keys that the source's Secret needs and values do not have.
func MissingKeys(c cluster.Cluster, o Options, values map[string][]byte) []string {
	var out []string
	need := func(keys ...string) {
		for _, key := range keys {
			if len(values[key]) == 0 {
				out = append(out, key)
			}
		}
	}
	switch {
	case c.Flux.URL == "":
	case SSH(c):
		need(KeyIdentity, KeyKnownHosts)
	case o.Private && len(values[KeyBearer]) == 0:
		need(KeyUsername, KeyPassword)
	}
	return out
}
