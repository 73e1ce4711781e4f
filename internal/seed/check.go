package seed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slipway/slipway/internal/cluster"
)

// check refuses what must not get into a seed, whoever made the cluster.
func check(c cluster.Cluster) error {
	for _, u := range c.Access.Users {
		if slices.ContainsFunc(u.Keys, func(k string) bool { return strings.Contains(k, "PRIVATE KEY") }) {
			return fmt.Errorf("user %s has a private key where a public one belongs", u.Name)
		}
	}
	for _, p := range []string{c.Proxy.HTTP, c.Proxy.HTTPS} {
		if _, rest, ok := strings.Cut(p, "://"); ok && strings.Contains(rest, "@") {
			return errors.New("the proxy URL holds a user or password, and whoever reads the disk can read a seed")
		}
	}
	for _, v := range values(c) {
		if !utf8.ValidString(v) || strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("%q is not one line of printable text", v)
		}
	}
	return nil
}

// values are the texts that become part of a line of a configuration file, where
// a line break would be a setting that nobody wrote.
func values(c cluster.Cluster) []string {
	out := slices.Concat(c.System.Modules, c.Time.Servers, c.Proxy.NoProxy)
	out = append(out, c.System.Locale, c.Proxy.HTTP, c.Proxy.HTTPS)
	for k, v := range c.System.Sysctls {
		out = append(out, k, v)
	}
	for _, u := range c.Access.Users {
		out = append(out, u.Name)
		out = append(out, u.Keys...)
	}
	return out
}
