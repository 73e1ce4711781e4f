package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/hosttool"
)

// head returns the head of a partition of 64 MiB that a real program formatted.
func head(t *testing.T, args ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "partition")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(64 << 20); err != nil {
		t.Fatal(err)
	}
	if len(args) > 0 {
		if err := hosttool.Run(t.Context(), hosttool.Cmd{Name: args[0], Args: append(args[1:], path)}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := readHead(path)
	if err != nil || len(data) != headSize {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	return data
}

func TestDecide(t *testing.T) {
	good := head(t, "mke2fs", "-q", "-t", "ext4")
	failed := append([]byte(nil), good...)
	failed[1024+0x3A] |= 2 // EXT4_ERROR_FS
	unclean := append([]byte(nil), good...)
	unclean[1024+0x60] |= 4 // INCOMPAT_RECOVER: the journal must be replayed, which mounting does
	half := make([]byte, headSize)
	copy(half[64<<10:], "inode tables of a mkfs that was killed")
	tests := []struct {
		name       string
		head       []byte
		unfinished bool
		want       Action
		err        string
	}{
		{"ours", good, false, Use, ""},
		{"ours after a power cut", unclean, false, Use, ""},
		{"ours with recorded errors", failed, false, Check, ""},
		{"blank", head(t), false, Make, ""},
		{"new", head(t), true, Make, ""},
		{"killed mkfs", half, true, Make, ""},
		{"formatted, but not completed", good, true, Make, ""},
		{"half of something, complete", half, false, Use, "unknown data"},
		{"FAT", head(t, "mkfs.vfat", "-F", "32"), false, Use, "FAT"},
		{"LUKS", append([]byte("LUKS\xba\xbe"), make([]byte, headSize)...), false, Use, "encrypted"},
		{"LVM", append(append(make([]byte, 512), "LABELONE"...), make([]byte, headSize)...), false, Use, "LVM"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Decide(tt.head, tt.unfinished)
			if tt.err == "" && (err != nil || got != tt.want) {
				t.Errorf("got %v, %v", got, err)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || diag.HintOf(err) == "") {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestSuperblock(t *testing.T) {
	super, ok := readSuperblock(head(t, "mke2fs", "-q", "-t", "ext4", "-b", "4096"))
	if !ok || super.BlockSize != 4096 || super.Size() != 64<<20 || !super.Clean {
		t.Errorf("%+v, %v", super, ok)
	}
	if _, ok := readSuperblock([]byte("short")); ok {
		t.Error("five bytes are a superblock")
	}
}
