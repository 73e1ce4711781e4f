package form

import (
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// systemForms holds the forms of what an operating system is made of.
func systemForms() []Form {
	return []Form{
		{Name: "size", Pattern: `^(auto|[0-9]{1,15}(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB))$`, Check: checkSize, Explain: explainSize,
			Want: "a size: a whole number with a unit, such as 512MiB or 2TB, or auto"},
		{Name: "wwn", Pattern: `^(0x[0-9a-f]{16}([0-9a-f]{16})?|eui\.[0-9a-f]{16}([0-9a-f]{16})?|naa\.[0-9a-f]{16}([0-9a-f]{16})?|nvme\.[0-9a-f]{4}(-[0-9a-f]+)+|uuid\.[0-9a-f-]{32,36})$`,
			Explain: explainWWN, Want: "a WWN as lsblk and udev show it (0x…, eui.…, naa.…, nvme.…)"},
		// Debian Policy 5.6.1: at least two characters, starting with a letter or digit.
		{Name: "package", Pattern: `^[a-z0-9][a-z0-9+.-]+$`, Explain: explainPackage, Want: "a Debian package name"},
		{Name: "module", Pattern: `^[A-Za-z0-9][A-Za-z0-9_-]{0,54}$`, Explain: explainModule, Want: "a kernel module name, such as br_netfilter"},
		{Name: "sysctl", Pattern: `^[a-z][a-z0-9_-]*(\.[A-Za-z0-9_-]+)+$`, Explain: explainSysctl,
			Want: "a kernel parameter, such as net.ipv4.ip_forward"},
		{Name: "kernelword", Pattern: `^[A-Za-z0-9_.-]+(=[!#-&(-~]*)?$`, Explain: explainKernelWord,
			Want: "one word of a kernel command line, such as mitigations=auto"},
		{Name: "locale", Pattern: `^(C|[a-z]{2,3}_[A-Z]{2})\.UTF-8$`, Explain: explainLocale, Want: "a UTF-8 locale, such as C.UTF-8"},
		{Name: "console", Pattern: `^(tty[0-9]{1,2}|ttyS[0-9]{1,2}|ttyUSB[0-9]|hvc[0-9])(,[0-9]{3,7}([noe]([78]r?)?)?)?$`, Explain: explainConsole,
			Want: "a kernel console, such as tty0 or ttyS0,115200"},
		{Name: "zone", Pattern: `^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){0,2}$`, Want: "a time zone, such as UTC or Europe/Berlin"},
		{Name: "suite", Pattern: `^[a-z]+$`, Check: checkSuite, Want: "a Debian code name, such as trixie"},
		{Name: "component", Pattern: `^(main|contrib|non-free|non-free-firmware)$`,
			Want: "a Debian archive component (main, contrib, non-free, non-free-firmware)"},
		sshKeyForm(),
	}
}

func checkSize(text string) *Problem {
	v, err := cluster.ParseSize(text)
	if err != nil {
		return &Problem{Message: err.Error()}
	}
	if v == 0 {
		return &Problem{"a size of nothing: " + text, "leave the key out if it does not matter"}
	}
	return nil
}

// explainSize recognises the usual spellings of other programs.
func explainSize(text string) *Problem {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit := strings.TrimSpace(strings.TrimPrefix(text, digits))
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return nil
	}
	switch strings.ToUpper(unit) {
	case "":
		return &Problem{"a size without a unit: " + Quote(text), "write " + digits + "MiB, " + digits + "GiB or what is meant"}
	case "K", "M", "G", "T":
		u := strings.ToUpper(unit)
		return &Problem{"a unit that means two things: " + Quote(text), "write " + digits + u + "iB (powers of 1024) or " + digits + u + "B (powers of 1000)"}
	case "KIB", "MIB", "GIB", "TIB":
		return &Problem{"a size in another form: " + Quote(text), "write " + digits + strings.ToUpper(unit[:1]) + "iB"}
	case "KB", "MB", "GB", "TB", "B":
		return &Problem{"a size in another form: " + Quote(text), "write " + digits + strings.ToUpper(unit)}
	}
	return nil
}

func explainWWN(text string) *Problem {
	if low := strings.ToLower(text); low != text {
		return &Problem{"upper-case letters in a WWN: " + Quote(text), "write it as lsblk -o NAME,WWN shows it, in lower case"}
	}
	if len(text) == 16 && strings.Trim(text, "0123456789abcdef") == "" {
		return &Problem{"a WWN without its kind: " + Quote(text), "write 0x" + text + " (SATA, SAS) or eui." + text + " (NVMe), as lsblk -o NAME,WWN shows it"}
	}
	return nil
}

func explainPackage(text string) *Problem {
	if strings.ContainsAny(text, "=:/") {
		return &Problem{"more than a package name: " + Quote(text), "versions are fixed by the lock, see `imagebuild pin`"}
	}
	return nil
}

func explainModule(text string) *Problem {
	base, _, found := strings.Cut(text, ".ko")
	if found {
		return &Problem{"a file name where a module's name belongs: " + Quote(text), "write " + base[strings.LastIndex(base, "/")+1:]}
	}
	return nil
}

func explainSysctl(text string) *Problem {
	if name := strings.TrimPrefix(text, "/proc/sys/"); strings.Contains(name, "/") {
		return &Problem{"a kernel parameter with slashes: " + Quote(text), "write " + strings.ReplaceAll(name, "/", ".")}
	}
	return nil
}

func explainKernelWord(text string) *Problem {
	if strings.ContainsAny(text, " \t") {
		return &Problem{"more than one word: " + Quote(text), "write one word an item; values with spaces are not supported"}
	}
	return nil
}

func explainLocale(text string) *Problem {
	if strings.HasSuffix(strings.ToLower(text), "utf8") {
		return &Problem{"a locale in another form: " + Quote(text), "write " + text[:len(text)-4] + "UTF-8"}
	}
	return nil
}

func explainConsole(text string) *Problem {
	if rest, ok := strings.CutPrefix(text, "console="); ok {
		return &Problem{"console= is added by Slipway: " + Quote(text), "write " + rest}
	}
	if rest, ok := strings.CutPrefix(text, "/dev/"); ok {
		return &Problem{"a path where a console's name belongs: " + Quote(text), "write " + rest}
	}
	return nil
}

// checkSuite refuses names that point elsewhere after the next release.
func checkSuite(text string) *Problem {
	switch text {
	case "stable", "testing", "unstable", "oldstable", "sid":
		return &Problem{"a suite that changes its meaning: " + text, "write a code name, such as trixie"}
	}
	return nil
}
