package rule

import (
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/k3sconf"
)

// k3sKeys refuses the keys of k3s's config.yaml that are Slipway's: the
// cluster-wide ones must be equal on all servers, byte for byte, and those of
// a node follow from the profile. Values are never repeated, they may be secrets.
func k3sKeys(c *cluster.Cluster, report Report) {
	for key := range c.K3s.Config {
		if hint := ownedKey(key); hint != "" {
			report(k3sPath(key), "the k3s key "+key+" is Slipway's", hint)
		}
	}
}

func k3sPath(key string) string { return "k3s.config." + key }

// ownedKey says who sets a key, or is "" for one that a profile may set.
func ownedKey(key string) string {
	if hint := secretKey(key); hint != "" {
		return hint
	}
	return k3sconf.Owner(key)
}

// secretKey recognises keys whose values do not belong into git.
func secretKey(key string) string {
	for _, part := range []string{"token", "secret-key", "access-key", "password", "vpn-auth"} {
		if strings.Contains(key, part) {
			return "its value is a secret: bootstrap init-secrets makes what must be born once, the rest belongs in the environment's SOPS file"
		}
	}
	return ""
}
