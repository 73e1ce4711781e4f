package seed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// files are what write_files puts on the node, in the order of their paths.
func files(c cluster.Cluster, node cluster.Node) ([]file, error) {
	base, err := baselineFile(c, node)
	if err != nil {
		return nil, err
	}
	out := []file{base, sshd()}
	out = append(out, locale(c.System)...)
	out = append(out, journal(c.System), modules(c.System), sysctls(c.System), timeServers(c.Time), proxy(c, node))
	out = slices.DeleteFunc(out, func(f file) bool { return f.Content == "" })
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

func readable(path, content string) file {
	return file{Path: path, Permissions: "0644", Content: content}
}

// sshd closes the ways in that have no key. It sorts before what cloud-init and
// the image may add: in sshd's configuration the first value counts.
func sshd() file {
	return readable("/etc/ssh/sshd_config.d/10-slipway.conf",
		"PermitRootLogin no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n")
}

// locale writes both files that hold the locale; systemd reads the first, PAM the
// second. Nothing is generated: a locale is in the image or it is not.
func locale(s cluster.System) []file {
	if s.Locale == "" {
		return nil
	}
	line := "LANG=" + s.Locale + "\n"
	return []file{readable("/etc/locale.conf", line), readable("/etc/default/locale", line)}
}

func journal(s cluster.System) file {
	if s.JournalMax <= 0 {
		return file{}
	}
	return readable("/etc/systemd/journald.conf.d/50-slipway.conf",
		fmt.Sprintf("[Journal]\nSystemMaxUse=%d\n", int64(s.JournalMax)))
}

func modules(s cluster.System) file {
	return readable("/etc/modules-load.d/slipway.conf", lines(s.Modules))
}

func sysctls(s cluster.System) file {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(s.Sysctls)) {
		out = append(out, k+" = "+s.Sysctls[k])
	}
	return readable("/etc/sysctl.d/90-slipway.conf", lines(out))
}

func timeServers(t cluster.Time) file {
	if len(t.Servers) == 0 {
		return file{}
	}
	return readable("/etc/systemd/timesyncd.conf.d/50-slipway.conf", "[Time]\nNTP="+strings.Join(t.Servers, " ")+"\n")
}

func lines(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, "\n") + "\n"
}
