package initrd

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/u-root/u-root/pkg/cpio"
)

// moduleFiles resolves module names to files below the modules tree, with all
// dependencies, sorted. A name that is neither a module nor built in is an error:
// a driver that silently stays out shows at the worst time.
func moduleFiles(tree string, wanted []string) ([]string, error) {
	deps, err := readDeps(tree)
	if err != nil {
		return nil, err
	}
	builtin, err := readBuiltin(tree)
	if err != nil {
		return nil, err
	}
	byName := map[string]string{}
	for file := range deps {
		byName[moduleName(file)] = file
	}
	soft, err := readSoft(tree)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	var take func(file string)
	take = func(file string) {
		if found[file] {
			return
		}
		found[file] = true
		for _, d := range deps[file] {
			take(d)
		}
		for _, name := range soft[moduleName(file)] {
			if f, ok := byName[name]; ok {
				take(f)
			}
		}
	}
	for _, name := range wanted {
		name = canonical(name)
		file, ok := byName[name]
		if !ok && builtin[name] {
			continue
		}
		if !ok {
			return nil, fmt.Errorf("kernel %s has no module %s", filepath.Base(tree), name)
		}
		take(file)
	}
	return sortedKeys(found), nil
}

// readDeps reads modules.dep: a file and, after a colon, all files it depends on.
func readDeps(tree string) (map[string][]string, error) {
	data, err := os.ReadFile(filepath.Join(tree, "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("reading module dependencies: %w", err)
	}
	deps := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		file, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok {
			deps[file] = strings.Fields(rest)
		}
	}
	return deps, nil
}

func readBuiltin(tree string) (map[string]bool, error) {
	data, err := os.ReadFile(filepath.Join(tree, "modules.builtin"))
	if err != nil {
		return nil, fmt.Errorf("reading list of built-in modules: %w", err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		names[moduleName(strings.TrimSpace(line))] = true
	}
	return names, nil
}

// indexRecords are modules.dep, cut down to the files that are in and with their
// plain names, modules.softdep and modules.alias for the same modules, and
// modules.builtin.
func indexRecords(tree, base string, files []string) ([]cpio.Record, error) {
	deps, err := readDeps(tree)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	names := map[string]bool{}
	for _, f := range files {
		names[moduleName(f)] = true
		fmt.Fprintf(&b, "%s:", plain(f))
		for _, d := range deps[f] {
			fmt.Fprintf(&b, " %s", plain(d))
		}
		b.WriteByte('\n')
	}
	builtin, err := os.ReadFile(filepath.Join(tree, "modules.builtin"))
	if err != nil {
		return nil, err
	}
	aliases, err := aliasesOf(tree, names)
	if err != nil {
		return nil, err
	}
	soft, err := softRecord(tree, files, deps)
	if err != nil {
		return nil, err
	}
	return []cpio.Record{
		cpio.StaticFile(path.Join(base, "modules.dep"), b.String(), 0o644),
		cpio.StaticFile(path.Join(base, "modules.softdep"), soft, 0o644),
		cpio.StaticFile(path.Join(base, "modules.builtin"), string(builtin), 0o644),
		cpio.StaticFile(path.Join(base, "modules.alias"), aliases, 0o644),
	}, nil
}

// aliasesOf keeps the lines "alias <pattern> <module>" of modules.alias whose module is in.
func aliasesOf(tree string, names map[string]bool) (string, error) {
	data, err := os.ReadFile(filepath.Join(tree, "modules.alias"))
	if err != nil {
		return "", fmt.Errorf("reading module aliases: %w", err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && names[canonical(f[2])] {
			b.WriteString(line)
		}
	}
	return b.String(), nil
}

// moduleName is the module in a file: kernel/fs/overlayfs/overlay.ko.xz is overlay.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return canonical(name)
}

// canonical folds dashes, which file names have, to underscores, which the kernel has.
func canonical(name string) string { return strings.ReplaceAll(name, "-", "_") }

func sortedKeys(m map[string]bool) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
