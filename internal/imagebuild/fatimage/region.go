package fatimage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// fallocate(2) modes, from linux/falloc.h.
const (
	fallocKeepSize  = 0x01
	fallocPunchHole = 0x02
)

// clear turns the region into a hole: mkfs writes only its own structures, and
// what lay there before would make the image depend on its past.
func (w writer) clear(context.Context) error {
	f, err := os.OpenFile(w.path(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if end := w.offset + w.spec.Size; st.Size() < end {
		return fmt.Errorf("the file ends at byte %d, the file system at %d", st.Size(), end)
	}
	err = syscall.Fallocate(int(f.Fd()), fallocKeepSize|fallocPunchHole, w.offset, w.spec.Size)
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		_, err = io.CopyN(io.NewOffsetWriter(f, w.offset), zeros{}, w.spec.Size)
	}
	if err != nil {
		return fmt.Errorf("clearing the region: %w", err)
	}
	return f.Close()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// verify reads the boot sector back. Readers tell FAT16 from FAT32 by the number
// of clusters alone (Microsoft's FAT specification, "FAT Type Determination"),
// and EDK2 refuses a FAT32 with too few, which mkfs.vfat makes without a word.
func (w writer) verify(context.Context) error {
	f, err := os.Open(w.path())
	if err != nil {
		return err
	}
	defer f.Close()
	boot := make([]byte, 512)
	if _, err := f.ReadAt(boot, w.offset); err != nil {
		return fmt.Errorf("reading back the boot sector: %w", err)
	}
	n := clusters(boot)
	least, most := int64(4085), int64(65524)
	if w.spec.Type == FAT32 {
		least, most = 65525, 0x0ffffff5
	}
	if n < least || n > most {
		return fmt.Errorf("%d bytes give %d clusters, FAT%d needs %d to %d", w.spec.Size, n, w.spec.Type, least, most)
	}
	return nil
}

// clusters counts the data clusters that a boot sector describes.
func clusters(boot []byte) int64 {
	le := binary.LittleEndian
	sector := int64(le.Uint16(boot[11:]))
	perCluster := int64(boot[13])
	reserved := int64(le.Uint16(boot[14:]))
	fats := int64(boot[16])
	rootEntries := int64(le.Uint16(boot[17:]))
	total := int64(le.Uint16(boot[19:]))
	if total == 0 {
		total = int64(le.Uint32(boot[32:]))
	}
	fatSize := int64(le.Uint16(boot[22:]))
	if fatSize == 0 {
		fatSize = int64(le.Uint32(boot[36:]))
	}
	if sector == 0 || perCluster == 0 {
		return 0
	}
	root := (rootEntries*32 + sector - 1) / sector
	return (total - reserved - fats*fatSize - root) / perCluster
}
