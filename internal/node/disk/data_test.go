package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/diskfs/go-diskfs/partition/gpt"

	"github.com/slipway/slipway/internal/disklayout"
)

func TestLayData(t *testing.T) {
	guids := map[string]bool{}
	for _, size := range []int64{100 * mib, 1<<30 + 777*512, 3 << 40} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			f, err := os.OpenFile(filepath.Join(t.TempDir(), "disk"), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			if err := f.Truncate(size); err != nil {
				t.Fatal(err)
			}
			if err := layData(f, size, 512); err != nil {
				t.Fatal(err)
			}
			sgdisk(t, f)
			table, err := gpt.Read(f, 512, 512)
			if err != nil || len(table.Partitions) != 1 {
				t.Fatalf("%+v, %v", table, err)
			}
			p := table.Partitions[0]
			if p.Name != disklayout.NameData || p.Start != 2048 || (p.End+1)%2048 != 0 || size-int64(p.End+1)*512 > 3*mib {
				t.Errorf("partition %+v", p)
			}
			for _, guid := range []string{table.GUID, p.GUID} {
				if guid == "" || guids[guid] {
					t.Errorf("GUID %q is not its own", guid)
				}
				guids[guid] = true
			}
			// Laid again after a power cut, it is whole.
			if err := layData(f, size, 512); err != nil {
				t.Fatal(err)
			}
			sgdisk(t, f)
		})
	}
}

func TestLayDataTooSmall(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(50 * mib); err != nil {
		t.Fatal(err)
	}
	if err := layData(f, 50*mib, 512); err == nil {
		t.Error("a disk without room")
	}
}
