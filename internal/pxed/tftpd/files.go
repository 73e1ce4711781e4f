package tftpd

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"strings"
	"sync"
	"time"
)

// Files hands over what may be read. The error of an unknown name is
// fs.ErrNotExist. The bytes are not changed by anybody afterwards.
type Files interface {
	File(client netip.Addr, name string) ([]byte, error)
}

// errTraversal is a name that leads out of what is served.
var errTraversal = errors.New("the name leads out of the served files")

// clean brings a name into the form of the list of served files. Firmware puts a
// slash in front or not.
func clean(name string) (string, error) {
	if strings.Contains(name, "\\") || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return "", errTraversal
	}
	name = strings.TrimLeft(name, "/")
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errTraversal
		}
	}
	return path.Clean(name), nil
}

// maxFile keeps memory bounded: boot loaders are far smaller.
const maxFile = 32 << 20

// Directory serves the named files of a file system from memory. A file that was
// replaced is read again.
type Directory struct {
	root  fs.FS
	names map[string]bool

	mu   sync.Mutex
	held map[string]held
}

type held struct {
	modified time.Time
	size     int64
	content  []byte
}

// NewDirectory serves exactly the given names, slash-separated paths below root.
func NewDirectory(root fs.FS, names ...string) *Directory {
	d := &Directory{root: root, names: map[string]bool{}, held: map[string]held{}}
	for _, n := range names {
		d.names[n] = true
	}
	return d
}

// File implements Files.
func (d *Directory) File(_ netip.Addr, name string) ([]byte, error) {
	if !d.names[name] {
		return nil, fs.ErrNotExist
	}
	info, err := fs.Stat(d.root, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", name, maxFile)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h, ok := d.held[name]; ok && h.modified.Equal(info.ModTime()) && h.size == info.Size() {
		return h.content, nil
	}
	content, err := fs.ReadFile(d.root, name)
	if err != nil {
		return nil, err
	}
	d.held[name] = held{info.ModTime(), info.Size(), content}
	return content, nil
}
