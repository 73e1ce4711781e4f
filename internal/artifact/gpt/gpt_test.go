package gpt

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/partition/gpt"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/disklayout"
)

const sector = 512

// image writes a table with go-diskfs, as a build does.
func image(t *testing.T) (string, artifact.Disk) {
	t.Helper()
	layout, err := disklayout.New("test", disklayout.MinESP, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	disk := artifact.Disk{Size: layout.Size, SectorSize: sector, GUID: layout.GUID}
	table := &gpt.Table{LogicalSectorSize: sector, PhysicalSectorSize: sector, ProtectiveMBR: true, GUID: layout.GUID}
	for _, p := range layout.Partitions {
		disk.Partitions = append(disk.Partitions, artifact.Partition(p))
		table.Partitions = append(table.Partitions, &gpt.Partition{
			Index: p.Number, Start: uint64(p.Offset / sector), End: uint64((p.Offset+p.Size)/sector) - 1, Size: uint64(p.Size),
			Type: gpt.Type(p.Type), GUID: p.GUID, Name: p.Name,
		})
	}
	path := filepath.Join(t.TempDir(), "disk.raw")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(layout.Size); err != nil {
		t.Fatal(err)
	}
	if err := table.Write(f, layout.Size); err != nil {
		t.Fatal(err)
	}
	return path, disk
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func sgdisk(t *testing.T, path string) {
	t.Helper()
	out, err := exec.Command("sgdisk", "-v", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "No problems found") {
		t.Errorf("sgdisk -v: %v\n%s", err, out)
	}
}

func TestTableOfAnotherLibraryAgrees(t *testing.T) {
	path, disk := image(t)
	if bad := Check(open(t, path), disk); len(bad) != 0 {
		t.Errorf("found %q", bad)
	}
}

func TestDifferencesAreNamed(t *testing.T) {
	path, disk := image(t)
	f := open(t, path)
	for want, change := range map[string]func(*artifact.Disk){
		"primary GPT: disk GUID is":                func(d *artifact.Disk) { d.GUID = "X" },
		"backup GPT: partition 1 is":               func(d *artifact.Disk) { d.Partitions[0].Name = "x" },
		"partition 4 (CIDATA) is not in the index": func(d *artifact.Disk) { d.Partitions = d.Partitions[:3] },
		"partition 5 (y) is missing":               func(d *artifact.Disk) { d.Partitions = append(d.Partitions, artifact.Partition{Number: 5, Name: "y"}) },
	} {
		d := disk
		d.Partitions = append([]artifact.Partition{}, disk.Partitions...)
		change(&d)
		if got := strings.Join(Check(f, d), "\n"); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEveryFlippedByteOfATableIsFound(t *testing.T) {
	path, disk := image(t)
	f := open(t, path)
	flip := func(at int64) {
		var b [1]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 0x40
		if _, err := f.WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
	}
	end := disk.Size - sector
	for _, at := range []int64{mbrEntry + 4, mbrEntry + 13, 510, sector, sector + 17, sector + 30, sector + 60, 2*sector + 3, 2*sector + 300, 33*sector + 511, end, end + 40, end + 91, end - 10, end - 16384} {
		flip(at)
		if bad := Check(f, disk); len(bad) != 1 {
			t.Errorf("byte %d: found %q", at, bad)
		}
		flip(at)
	}
}

func TestMovedTableIsClean(t *testing.T) {
	path, disk := image(t)
	f := open(t, path)
	head := make([]byte, 1<<20)
	if _, err := f.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{disk.Size, disk.Size + sector, 3 << 30} {
		start, tail, err := Move(head, sector, size)
		if err != nil {
			t.Fatal(err)
		}
		if size == disk.Size && !bytes.Equal(start, head) {
			t.Error("moving to the same size changes the table")
		}
		big := filepath.Join(t.TempDir(), "big")
		g, err := os.Create(big)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Truncate(size); err != nil {
			t.Fatal(err)
		}
		if _, err := g.WriteAt(start, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := g.WriteAt(tail, size-int64(len(tail))); err != nil {
			t.Fatal(err)
		}
		grown := disk
		grown.Size = size
		if bad := Check(g, grown); len(bad) != 0 {
			t.Errorf("%d bytes: %q", size, bad)
		}
		g.Close()
		sgdisk(t, big)
	}
	if _, _, err := Move(head, sector, disk.Size-disklayout.Alignment); err == nil {
		t.Error("moved onto a disk that is too small")
	}
	if _, _, err := Move(make([]byte, 1<<20), sector, disk.Size); err == nil {
		t.Error("moved zeros")
	}
	if _, _, err := Move(head[:100], sector, disk.Size); err == nil {
		t.Error("moved a piece")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("EFI PART"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := append(make([]byte, sector), data...)
		if _, err := Read(bytes.NewReader(b), sector, 1); err == nil && len(data) < headerSize {
			t.Error("accepted")
		}
		_, err := Read(io.NewSectionReader(bytes.NewReader(b), 0, 5), sector, 1)
		if err == nil {
			t.Error("accepted a piece")
		}
	})
}
