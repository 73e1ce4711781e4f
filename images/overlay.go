package images

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/slipway/slipway/internal/fstree"
)

// Drop returns the patterns of paths that stay out of the packages' files. "*"
// matches within a path element, a final "**" the rest of the path.
func Drop() ([]string, error) { return list("rootfs.drop") }

// Overlay is everything that is laid over the packages: the files under rootfs/,
// the directories and modes of rootfs.modes, the links of rootfs.links.
func Overlay() (fstree.Tree, error) {
	root, err := Rootfs()
	if err != nil {
		return fstree.Tree{}, err
	}
	files, err := fstree.FromFS(root)
	if err != nil {
		return fstree.Tree{}, fmt.Errorf("reading built-in files: %w", err)
	}
	entries, err := links()
	if err != nil {
		return fstree.Tree{}, err
	}
	changed, err := withModes(files)
	if err != nil {
		return fstree.Tree{}, err
	}
	more, err := fstree.New(append(entries, changed...)...)
	if err != nil {
		return fstree.Tree{}, fmt.Errorf("rootfs.links and rootfs.modes: %w", err)
	}
	return files.Merge(more)
}

// links are the symbolic links of rootfs.links.
func links() ([]fstree.Entry, error) {
	words, err := list("rootfs.links")
	if err != nil {
		return nil, err
	}
	if len(words)%2 != 0 {
		return nil, fmt.Errorf("rootfs.links: %d words are not pairs of a path and a target", len(words))
	}
	var out []fstree.Entry
	for ; len(words) > 0; words = words[2:] {
		out = append(out, fstree.Symlink(words[0], words[1]))
	}
	return out, nil
}

// withModes are the entries of rootfs.modes: files of the tree with another mode,
// and directories.
func withModes(files fstree.Tree) ([]fstree.Entry, error) {
	words, err := list("rootfs.modes")
	if err != nil {
		return nil, err
	}
	if len(words)%2 != 0 {
		return nil, fmt.Errorf("rootfs.modes: %d words are not pairs of a mode and a path", len(words))
	}
	var out []fstree.Entry
	for ; len(words) > 0; words = words[2:] {
		mode, err := strconv.ParseUint(words[0], 8, 12)
		if err != nil {
			return nil, fmt.Errorf("rootfs.modes: mode of %s: %w", words[1], err)
		}
		if dir, ok := strings.CutSuffix(words[1], "/"); ok {
			out = append(out, fstree.Dir(dir, fs.FileMode(mode)))
			continue
		}
		e, ok := files.Lookup(words[1])
		if !ok {
			return nil, fmt.Errorf("rootfs.modes: there is no %s under rootfs", words[1])
		}
		out = append(out, fstree.File(e.Path, fs.FileMode(mode), e.Content))
	}
	return out, nil
}
