package form

import (
	"strings"
	"testing"
)

// cases lists, for each form, texts that it admits and, after them, texts that
// it refuses with a part of the message or hint.
func cases() map[string]struct {
	good []string
	bad  map[string]string
} {
	type c = struct {
		good []string
		bad  map[string]string
	}
	return map[string]c{
		"label":  {[]string{"a", "n1", "no", "0123", "a-b", strings.Repeat("a", 63)}, map[string]string{"A": "write a", "a_b": "a-b", "a.b": "dnsZone", "-a": "label", "a-": "label", "": "label", strings.Repeat("a", 64): "label", "ä": "label", "a\n": "label"}},
		"domain": {[]string{"example.org", "local", "a.b.c"}, map[string]string{"example.org.": "final dot", "Example.org": "lower case", "a..b": "domain", strings.Repeat("a.", 130) + "a": "253"}},
		"login":  {[]string{"ada", "_x", "a-1"}, map[string]string{"Ada": "login", "1a": "login", "a b": "login", strings.Repeat("a", 33): "login", "a.b": "login"}},
		"line":   {[]string{"a", "0 1\"x\""}, map[string]string{"": "line", "ä": "line", "a\tb": "line", strings.Repeat("a", 257): "line"}},
		"secretref": {[]string{"wg_home", "a.b-c"}, map[string]string{"a/b": "SOPS", "1": "SOPS",
			"yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=": "SOPS", strings.Repeat("a", 44): "SOPS"}},
		"branch":     {[]string{"main", "release/1.x"}, map[string]string{"a..b": "git", "a/": "git", "a.lock": "git", "-a": "git", "a b": "git", "a//b": "git", "a/.b": "git"}},
		"repopath":   {[]string{"clusters/prod", "./clusters/prod", "a"}, map[string]string{"/a": "repository", "../a": "leaves", "a/../b": "leaves", "a//b": "directory", "a/": "directory"}},
		"path":       {[]string{"/a", "/var/lib/longhorn"}, map[string]string{"a": "absolute", "/": "absolute", "/a/": "absolute", "/a/../b": "..", "/a b": "absolute"}},
		"mac":        {[]string{"52:54:00:12:34:56", "02:00:00:00:00:01"}, map[string]string{"52-54-00-12-34-56": "write 52:54:00:12:34:56", "5254.0012.3456": "write", "52:54:00:AB:34:56": "write 52:54:00:ab:34:56", "01:00:00:00:00:00": "multicast", "00:00:00:00:00:00": "zero", "ff:ff:ff:ff:ff:ff": "broadcast", "52:54": "MAC", "": "MAC"}},
		"address":    {[]string{"10.0.0.1", "2001:db8::1", "fe80::1"}, map[string]string{"10.0.0.1/24": "write 10.0.0.1", "010.0.0.1": "octal", "10.0.0": "address", "0.0.0.0": "no machine", "127.0.0.1": "no machine", "224.0.0.1": "no machine", "::ffff:10.0.0.1": "write 10.0.0.1", "2001:DB8::1": "IP address", "fe80::1%eth0": "IP address", "256.1.1.1": "IP address", "host": "IP address"}},
		"cidr":       {[]string{"10.0.0.0/8", "10.0.0.1/32", "fd00::/8"}, map[string]string{"10.0.0.1/24": "10.0.0.0/24", "10.0.0.0": "missing", "10.0.0.0/33": "network", "10.0.0.0/08": "network", "fd00:0::/32": "write fd00::/32"}},
		"hostprefix": {[]string{"10.0.0.1/24", "fd00::1/64"}, map[string]string{"10.0.0.1": "missing", "10.0.0.1/0": "internet", "10.0.0.01/24": "octal", "0.0.0.0/24": "no machine"}},
		"host":       {[]string{"ntp.example.org", "10.0.0.1", "2001:db8::1"}, map[string]string{"a:123": "alone", "ntp://a": "alone", "10.0.0": "IP", "10.0.0.256": "IP", "": "host"}},
		"hostport":   {[]string{"a.b:1", "10.0.0.1:65535", "[2001:db8::1]:51820"}, map[string]string{"a": "host:port", "a:0": "65535", "a:65536": "65535", "2001:db8::1:1": "host:port", "1.2.3:1": "IP"}},
		"interface":  {[]string{"wg0"}, map[string]string{"0a": "interface", strings.Repeat("a", 16): "interface", "a/b": "interface"}},
		"wireguard":  {[]string{strings.Repeat("A", 43) + "="}, map[string]string{strings.Repeat("A", 44): "WireGuard", strings.Repeat("A", 42) + "B=": "WireGuard"}},
		"noproxy":    {[]string{".example.org", "host", "10.0.0.0/8", "10.0.0.1", "fd00::/8"}, map[string]string{"*.a": "wildcards", "a,b": "one item", "10.0.0.1/8": "10.0.0.0/8", "http://a": "host"}},
		"size":       {[]string{"1B", "512MiB", "2TB", "auto"}, map[string]string{"0B": "nothing", "512": "unit", "512M": "512MiB", "512mb": "write 512MB", "512mib": "write 512MiB", "1.5GB": "whole", "9999999999TB": "large", "": "size", "-1GB": "size"}},
		"wwn":        {[]string{"0x5000c500a1b2c3d4", "eui.0025385b2140c01f", "nvme.144d-53-1", "naa.5000c500a1b2c3d4"}, map[string]string{"0025385b2140c01f": "eui.0025385b2140c01f", "0x5000C500A1B2C3D4": "lower case", "x": "WWN"}},
		"package":    {[]string{"htop", "g++", "libc6", "0ad"}, map[string]string{"a": "package", "Vim": "package", "a=1": "lock", "libc6:amd64": "lock"}},
		"module":     {[]string{"br_netfilter", "8021q"}, map[string]string{"tun.ko": "write tun", "/x/tun.ko.zst": "write tun", "a b": "module"}},
		"sysctl":     {[]string{"net.ipv4.ip_forward", "net.ipv4.conf.eth0-1.rp_filter"}, map[string]string{"net/ipv4/ip_forward": "write net.ipv4.ip_forward", "/proc/sys/vm/swappiness": "write vm.swappiness", "swappiness": "parameter", "net.ipv4.*": "parameter"}},
		"kernelword": {[]string{"nosmt", "mitigations=auto", "a.b=c,d"}, map[string]string{"a b": "one word", `a="b"`: "word", "=a": "word", "a='b'": "word"}},
		"locale":     {[]string{"C.UTF-8", "de_DE.UTF-8"}, map[string]string{"de_DE.utf8": "write de_DE.UTF-8", "de_DE": "locale", "C": "locale"}},
		"console":    {[]string{"tty0", "ttyS0,115200", "ttyS0,115200n8r", "hvc0"}, map[string]string{"console=tty0": "write tty0", "/dev/tty0": "write tty0", "eth0": "console"}},
		"zone":       {[]string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+1"}, map[string]string{"europe/berlin": "zone", "../etc": "zone", "": "zone"}},
		"suite":      {[]string{"trixie"}, map[string]string{"stable": "code name", "sid": "code name", "debian13": "code name"}},
		"component":  {[]string{"main", "non-free-firmware"}, map[string]string{"universe": "component"}},
		"version":    {[]string{"1.20.2"}, map[string]string{"v1.20.2": "write 1.20.2", "1.20": "one release", "latest": "latest", "1.20.2-rc1": "one release"}},
		"k3sversion": {[]string{"v1.34.4+k3s1"}, map[string]string{"v1.34.4-k3s1": "write v1.34.4+k3s1", "1.34.4+k3s1": "k3s version", "v1.34.4": "k3s version"}},
		"k3skey":     {[]string{"etcd-expose-metrics"}, map[string]string{"tls-san+": "appends", "--debug": "write debug", "Debug": "key"}},
		"url":        {[]string{"http://a", "https://a.b:5000/v2/x"}, map[string]string{"a.b": "scheme", "https://a:b@c": "credentials", "ftp://a": "http", "http://:80": "URL", "http://a:99999": "65535", "http://a/?token=b": "http"}},
		"proxy":      {[]string{"http://a:3128", "http://a:3128/"}, map[string]string{"a:3128": "scheme", "socks5://a": "proxy", "http://u:p@a": "credentials", "http://a/b": "proxy"}},
		"giturl":     {[]string{"ssh://git@a/b", "https://a/b.git", "ssh://git@a:22/b"}, map[string]string{"git@a:b.git": "ssh://git@a/b.git", "http://a/b": "unprotected", "https://u:p@a/b": "credentials", "https://token@a/b": "credentials", "ssh://git:pw@a/b": "credentials", "/srv/git": "git repository"}},
		"registry":   {[]string{"docker.io", "localhost:5000", "*"}, map[string]string{"https://docker.io/": "write docker.io", "a/b": "registry"}},
		"sshkey": {[]string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINXJ6qihKWyirusEsvJI0z7l01boftJK2lgdomTqwJyY", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINXJ6qihKWyirusEsvJI0z7l01boftJK2lgdomTqwJyY a b"},
			map[string]string{"ssh-ed25519 AAAA": "cut", "~/.ssh/id.pub": "content", "ssh-ed25519": "public", "no-pty ssh-ed25519 AAAA": "options", "ssh-dss AAAAB3NzaC1kc3MAAACB": "DSA",
				"ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAINXJ6qihKWyirusEsvJI0z7l01boftJK2lgdomTqwJyY": "paste", strings.Repeat("a", 3000): "long"}},
	}
}

func TestForms(t *testing.T) {
	table, all := All(), cases()
	for name := range table {
		if _, ok := all[name]; !ok {
			t.Errorf("%s has no test", name)
		}
	}
	for name, c := range all {
		f, ok := table[name]
		if !ok {
			t.Errorf("there is no form %s", name)
			continue
		}
		for _, text := range c.good {
			if p := f.Test(text); p != nil {
				t.Errorf("%s refuses %q: %s", name, text, p.Message)
			}
		}
		for text, want := range c.bad {
			p := f.Test(text)
			switch {
			case p == nil:
				t.Errorf("%s admits %q", name, text)
			case !strings.Contains(p.Message+" | "+p.Hint, want):
				t.Errorf("%s about %q: %s | %s, want %q", name, text, p.Message, p.Hint, want)
			}
		}
	}
}

// A message never repeats what may be a secret.
func TestSecretsStayOut(t *testing.T) {
	table := All()
	for name, text := range map[string]string{"url": "https://ada:hunter2@a/b", "giturl": "https://hunter2@a/b", "proxy": "http://ada:hunter2@a:1",
		"secretref": "hunter2+secret=", "registry": "https://ada:hunter2@docker.io", "host": "http://ada:hunter2@a"} {
		if p := table[name].Test(text); p == nil || strings.Contains(p.Message+p.Hint, "hunter2") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestQuote(t *testing.T) {
	if got := Quote("a\x1b[31m" + strings.Repeat("ö", 100)); strings.ContainsRune(got, 0x1b) || !strings.HasSuffix(got, `…"`) || len([]rune(got)) > 70 {
		t.Error(got)
	}
}
