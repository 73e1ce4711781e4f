package disk

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/partition/gpt"

	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/hosttool"
)

const mib = 1 << 20

// image makes a disk image as the build does, and then gives it the size of a disk.
func image(t *testing.T, size int64) *os.File {
	t.Helper()
	layout, err := disklayout.New("test", 260*mib, 200*mib)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "disk.img"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(layout.Size); err != nil {
		t.Fatal(err)
	}
	table := &gpt.Table{LogicalSectorSize: 512, PhysicalSectorSize: 512, ProtectiveMBR: true, GUID: layout.GUID}
	for _, p := range layout.Partitions {
		table.Partitions = append(table.Partitions, &gpt.Partition{
			Index: p.Number, Name: p.Name, Type: gpt.Type(p.Type), GUID: p.GUID,
			Start: uint64(p.Offset / 512), End: uint64((p.Offset+p.Size)/512) - 1, Size: uint64(p.Size),
		})
	}
	if err := table.Write(f, layout.Size); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return f
}

// sgdisk is the foreign reader: it must find no problem.
func sgdisk(t *testing.T, f *os.File) {
	t.Helper()
	out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: "sgdisk", Args: []string{"-v", f.Name()}})
	if err != nil || !strings.Contains(string(out), "No problems found") {
		t.Errorf("sgdisk -v: %v\n%s", err, out)
	}
	if strings.Contains(strings.ToLower(string(out)), "warning") {
		t.Errorf("sgdisk -v warns:\n%s", out)
	}
}

func fit(t *testing.T, f *os.File, size int64) (*gpt.Partition, Growth) {
	t.Helper()
	table, growth, err := FitTable(f, size, 512)
	if err != nil {
		t.Fatal(err)
	}
	sgdisk(t, f)
	return find(table, disklayout.NameState), growth
}

func TestFirstBoot(t *testing.T) {
	for _, size := range []int64{2 << 30, 2<<30 + 512, 2<<30 + 777*512, 3 << 40, 9 << 40} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			f := image(t, size)
			state, growth := fit(t, f, size)
			if !growth.Created || !growth.Table {
				t.Errorf("growth %+v", growth)
			}
			if state.Index != 5 || state.Start%2048 != 0 || (state.End+1)%2048 != 0 {
				t.Errorf("state is partition %d from sector %d to %d", state.Index, state.Start, state.End)
			}
			if rest := size - (int64(state.End)+1)*512; rest > 3*mib {
				t.Errorf("%d bytes at the end are unused", rest)
			}
			if state.Attributes&attrUnfinished == 0 {
				t.Error("the new state partition is not marked as unfinished")
			}
			if state, growth := fit(t, f, size); growth.Changed() || state.Attributes&attrUnfinished == 0 {
				t.Errorf("the second boot changes %+v", growth)
			}
			if err := finishTable(f, size, 512); err != nil {
				t.Fatal(err)
			}
			if state, growth := fit(t, f, size); growth.Changed() || state.Attributes&attrUnfinished != 0 {
				t.Errorf("after completion: %+v, attributes %x", growth, state.Attributes)
			}
		})
	}
}

func TestProtectiveMBRSize(t *testing.T) {
	for size, want := range map[int64][]byte{
		2 << 30: {0xff, 0xff, 0x3f, 0},
		3 << 40: {0xff, 0xff, 0xff, 0xff},
	} {
		f := image(t, size)
		fit(t, f, size)
		got := make([]byte, 4)
		if _, err := f.ReadAt(got, 446+12); err != nil || !bytes.Equal(got, want) {
			t.Errorf("disk of %d bytes: size in the MBR % x, want % x (%v)", size, got, want, err)
		}
	}
}

func TestEnlargedDisk(t *testing.T) {
	f := image(t, 2<<30)
	before, _ := fit(t, f, 2<<30)
	start, guid := before.Start, before.GUID
	if err := finishTable(f, 2<<30, 512); err != nil {
		t.Fatal(err)
	}
	// Data in the state partition, right up to its old end.
	mark := []byte("do not lose this")
	for _, at := range []int64{int64(start) * 512, (int64(before.End)+1)*512 - int64(len(mark))} {
		if _, err := f.WriteAt(mark, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(5 << 30); err != nil {
		t.Fatal(err)
	}
	after, growth := fit(t, f, 5<<30)
	if !growth.Grown || growth.Created || after.Start != start || after.GUID != guid || after.Size < 3<<30 {
		t.Errorf("growth %+v, state %+v", growth, after)
	}
	if after.Attributes&attrUnfinished != 0 {
		t.Error("a grown state partition counts as unfinished: it would be formatted")
	}
	for _, at := range []int64{int64(start) * 512, 2<<30 - 2*mib} {
		got := make([]byte, mib)
		if _, err := f.ReadAt(got, at); err != nil || !bytes.Contains(got, mark) {
			t.Errorf("data at byte %d is lost (%v)", at, err)
		}
	}
}

func TestOldSignaturesAreGone(t *testing.T) {
	const size = 2 << 30
	f := image(t, size)
	dirt := bytes.Repeat([]byte{0xA5}, 2*mib)
	const imageEnd = 678 * mib // 2 + 260 + 2*200 + 16
	for _, at := range []int64{imageEnd + 33*512, size - 2*mib} {
		if _, err := f.WriteAt(dirt, at); err != nil {
			t.Fatal(err)
		}
	}
	state, _ := fit(t, f, size)
	head, tail := make([]byte, mib), make([]byte, mib)
	if _, err := f.ReadAt(head, int64(state.Start)*512); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(tail, size-mib-33*512); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(head, []byte{0xA5}) || bytes.Contains(tail, []byte{0xA5}) {
		t.Error("what was on the disk before is still at the start or the end of state")
	}
}

func TestRefusals(t *testing.T) {
	small := image(t, 700*mib)
	if _, _, err := FitTable(small, 700*mib, 512); err == nil || !strings.Contains(err.Error(), "are needed") {
		t.Errorf("a disk without room for state: %v", err)
	}
	before := ends(t, small, 700*mib)
	if _, _, err := FitTable(small, 300*mib, 512); err == nil || !strings.Contains(err.Error(), "300 MiB") {
		t.Errorf("a disk smaller than its table: %v", err)
	}
	if !bytes.Equal(before, ends(t, small, 700*mib)) {
		t.Error("a refused disk was written")
	}
}

// ends returns the first and the last megabyte of a disk, where its tables are.
func ends(t *testing.T, f *os.File, size int64) []byte {
	t.Helper()
	both := make([]byte, 2*mib)
	if _, err := f.ReadAt(both[:mib], 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(both[mib:], size-mib); err != nil {
		t.Fatal(err)
	}
	return both
}

func TestStateIsNotLast(t *testing.T) {
	f := image(t, 2<<30)
	fit(t, f, 2<<30)
	table, err := gpt.Read(f, 512, 512)
	if err != nil {
		t.Fatal(err)
	}
	state := find(table, disklayout.NameState)
	state.End -= 2048 * 100
	state.Size -= mib * 100
	table.Partitions = append(table.Partitions, &gpt.Partition{Index: 6, Name: disklayout.NameData, Type: disklayout.TypeLinux,
		Start: state.End + 1, End: state.End + 2048*100, Size: 100 * mib})
	if err := write(f, table, 2<<30); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(4 << 30); err != nil {
		t.Fatal(err)
	}
	after, growth := fit(t, f, 4<<30)
	if growth.Grown || growth.Created || !growth.Table || after.End != state.End {
		t.Errorf("growth %+v, end %d instead of %d", growth, after.End, state.End)
	}
}

// TestPrimaryLost is a power cut while the primary table was written.
func TestPrimaryLost(t *testing.T) {
	f := image(t, 2<<30)
	fit(t, f, 2<<30)
	if _, err := f.WriteAt(make([]byte, 512), 512); err != nil {
		t.Fatal(err)
	}
	if _, growth := fit(t, f, 2<<30); !growth.Table || growth.Created {
		t.Errorf("growth %+v", growth)
	}
}
