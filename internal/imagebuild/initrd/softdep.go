package initrd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readSoft reads modules.softdep: what a module asks the kernel for when it is
// used, and which is not found in an initramfs where nothing answers such a request
// (modprobe.d(5)). ext4 asks for a CRC32C in this way. The words are modules or
// aliases; what they resolve to are modules, in the order in which they are loaded.
// Words that resolve to nothing are built into the kernel, or not needed here.
func readSoft(tree string) (map[string][]string, error) {
	data, err := os.ReadFile(filepath.Join(tree, "modules.softdep"))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string][]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading soft dependencies of modules: %w", err)
	}
	aliases, err := readAliases(tree)
	if err != nil {
		return nil, err
	}
	soft := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "softdep" || f[2] != "pre:" {
			continue
		}
		name := canonical(f[1])
		for _, word := range f[3:] {
			if word == "post:" {
				break
			}
			soft[name] = append(soft[name], canonical(word))
			soft[name] = append(soft[name], aliases[word]...)
		}
	}
	return soft, nil
}

// readAliases gives the modules that modules.alias has for a word, patterns aside.
func readAliases(tree string) (map[string][]string, error) {
	data, err := os.ReadFile(filepath.Join(tree, "modules.alias"))
	if err != nil {
		return nil, fmt.Errorf("reading module aliases: %w", err)
	}
	aliases := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "alias" {
			aliases[f[1]] = append(aliases[f[1]], canonical(f[2]))
		}
	}
	return aliases, nil
}

// softRecord is modules.softdep for the modules that are in: for each of them what
// it and those that it depends on want to have before.
func softRecord(tree string, files []string, deps map[string][]string) (string, error) {
	soft, err := readSoft(tree)
	if err != nil {
		return "", err
	}
	in := map[string]bool{}
	for _, f := range files {
		in[moduleName(f)] = true
	}
	var b strings.Builder
	for _, f := range files {
		var before []string
		for _, d := range append([]string{f}, deps[f]...) {
			for _, name := range soft[moduleName(d)] {
				if in[name] && !slices.Contains(before, name) {
					before = append(before, name)
				}
			}
		}
		if len(before) > 0 {
			fmt.Fprintf(&b, "softdep %s pre: %s\n", moduleName(f), strings.Join(before, " "))
		}
	}
	return b.String(), nil
}
