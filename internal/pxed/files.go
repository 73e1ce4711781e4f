package pxed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"sync"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/pxed/build"
)

// bootFiles are the boot loaders of the build, for TFTP. They are small and asked
// for often: each is read once and kept.
type bootFiles struct {
	build *build.Build
	names map[string]bool

	mu   sync.Mutex
	held map[string][]byte
}

func newBootFiles(b *build.Build) *bootFiles {
	f := &bootFiles{build: b, names: map[string]bool{}, held: map[string][]byte{}}
	for _, file := range b.Index.Find(artifact.RoleIPXE) {
		f.names[file.Name] = true
	}
	return f
}

// maxBootFile bounds a boot loader, bytes; iPXE with all its drivers has a million.
const maxBootFile = 16 << 20

// File implements tftpd.Files.
func (f *bootFiles) File(_ netip.Addr, name string) ([]byte, error) {
	if !f.names[name] {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if data, ok := f.held[name]; ok {
		return data, nil
	}
	r, file, err := f.build.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if file.Size > maxBootFile {
		return nil, fmt.Errorf("%s has %d bytes, too many for TFTP", name, file.Size)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxBootFile))
	if err == nil && int64(len(data)) != file.Size {
		err = errors.New("has another size than when it was verified")
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	f.held[name] = data
	return data, nil
}
