package rootfs

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path"
)

// Flags of a compiled Python module (PEP 552), the second word of its header.
const (
	pycHashed  = 1 << 0 // validated by a hash of the source, not by its time
	pycChecked = 1 << 1 // and that at every import
)

// trustPyc makes hash-validated Python modules unchecked. With SOURCE_DATE_EPOCH
// set, Debian compiles all of them so that each import reads and hashes the source
// as well; in a slot, which is read-only and verified, the source cannot change.
func trustPyc(h *tar.Header, content io.Reader) (io.Reader, error) {
	const header = 8
	if h.Typeflag != tar.TypeReg || path.Ext(h.Name) != ".pyc" || h.Size < header {
		return content, nil
	}
	var head [header]byte
	if _, err := io.ReadFull(content, head[:]); err != nil {
		return nil, errors.Join(errors.New("reading the header"), err)
	}
	flags := head[4:]
	if binary.LittleEndian.Uint32(flags) == pycHashed|pycChecked {
		binary.LittleEndian.PutUint32(flags, pycHashed)
	}
	return io.MultiReader(bytes.NewReader(head[:]), content), nil
}
