package compare

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway/slipway/internal/digest"
)

// cpioEntry is a file of a newc archive ("070701", cpio(5)). Fields are as they
// stand in the header, by name.
type cpioEntry struct {
	name    string
	fields  [13]uint32
	content digest.Digest
}

// cpioFields names the numbers of a header.
func cpioFields() [13]string {
	return [13]string{"inode", "mode", "uid", "gid", "links", "time", "size", "major", "minor", "rmajor", "rminor", "name size", "check"}
}

// describeInitrd finds the first entry that differs.
func describeInitrd(pathA, pathB string, d *Difference) error {
	a, errA := readInitrd(pathA)
	b, errB := readInitrd(pathB)
	if err := errors.Join(errA, errB); err != nil {
		d.What = "content differs, and cannot be read as an archive: " + err.Error()
		return nil
	}
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			d.What = b[i].name + " is only in the second build"
			return nil
		case i >= len(b):
			d.What = a[i].name + " is only in the first build"
			return nil
		case a[i].name != b[i].name:
			d.What = fmt.Sprintf("%s in the first build stands where %s does in the second", a[i].name, b[i].name)
			return nil
		}
		if what := a[i].difference(b[i]); what != "" {
			d.What = a[i].name + " differs in " + what
			return nil
		}
	}
	d.What = "same entries, but compressed in another way"
	return nil
}

// difference says in what an entry of the same name differs. A size goes before
// the content, of which it is a part, and the inode comes last.
func (e cpioEntry) difference(o cpioEntry) string {
	names := cpioFields()
	for i := len(names) - 1; i > 0; i-- {
		if e.fields[i] != o.fields[i] {
			if names[i] == "mode" {
				return fmt.Sprintf("mode: %o and %o", e.fields[i], o.fields[i])
			}
			return fmt.Sprintf("%s: %d and %d", names[i], e.fields[i], o.fields[i])
		}
	}
	if e.content != o.content {
		return "content"
	}
	if e.fields[0] != o.fields[0] {
		return "inode number"
	}
	return ""
}

// readInitrd reads an archive that may be compressed with zstd.
func readInitrd(path string) ([]cpioEntry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if magic, err := in.Peek(4); err == nil && bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		dec, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, err
		}
		defer dec.Close()
		in = bufio.NewReader(dec)
	}
	return readCpio(in)
}

func readCpio(in *bufio.Reader) ([]cpioEntry, error) {
	var out []cpioEntry
	for {
		e, err := readEntry(in)
		if errors.Is(err, io.EOF) || err == nil && e.name == "TRAILER!!!" {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", len(out), err)
		}
		out = append(out, e)
	}
}

const (
	cpioHeader  = 110
	maxCpioName = 4096
)

func readEntry(in *bufio.Reader) (cpioEntry, error) {
	var e cpioEntry
	var h [cpioHeader]byte
	if _, err := io.ReadFull(in, h[:]); err != nil {
		return e, err
	}
	if string(h[:6]) != "070701" {
		return e, errors.New("no newc header")
	}
	for i := range e.fields {
		v, err := strconv.ParseUint(string(h[6+8*i:14+8*i]), 16, 32)
		if err != nil {
			return e, err
		}
		e.fields[i] = uint32(v)
	}
	size, nameSize := int64(e.fields[6]), int64(e.fields[11])
	if nameSize < 1 || nameSize > maxCpioName {
		return e, fmt.Errorf("name of %d bytes", nameSize)
	}
	name := make([]byte, nameSize+pad(cpioHeader+nameSize))
	if _, err := io.ReadFull(in, name); err != nil {
		return e, fmt.Errorf("name: %w", err)
	}
	e.name = string(name[:nameSize-1])
	w := digest.NewWriter(io.Discard)
	if _, err := io.CopyN(w, in, size); err != nil {
		return e, fmt.Errorf("%s: %w", e.name, err)
	}
	e.content = w.Sum()
	_, err := in.Discard(int(pad(size)))
	return e, err
}

// pad is how many bytes are missing to a multiple of four.
func pad(n int64) int64 { return -n & 3 }
