package slot

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/hosttool"
)

const salt = "00112233445566778899aabbccddeeff"

// realSlot makes a slot with the programs that the build uses.
func realSlot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	tree, path := filepath.Join(dir, "tree"), filepath.Join(dir, "slot.img")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "file"), bytes.Repeat([]byte("content"), 100_000), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "mksquashfs", tree, path, "-comp", "zstd", "-noappend", "-no-progress", "-quiet", "-nopad")
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	padded := (st.Size() + Block - 1) / Block * Block
	if err := os.Truncate(path, padded); err != nil {
		t.Fatal(err)
	}
	run(t, "veritysetup", "format", path, path, fmt.Sprintf("--hash-offset=%d", padded), "--salt="+salt,
		fmt.Sprintf("--data-blocks=%d", padded/Block))
	return path
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if err := hosttool.Run(t.Context(), hosttool.Cmd{Name: name, Args: args}); err != nil {
		t.Fatal(err)
	}
}

func TestReadLayout(t *testing.T) {
	f, err := os.Open(realSlot(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := ReadLayout(f)
	if err != nil {
		t.Fatal(err)
	}
	if l.Salt != salt || l.Algorithm != "sha256" || l.DataBlocks == 0 || l.HashStart != l.DataBlocks+1 {
		t.Errorf("layout %+v", l)
	}
}

func TestDamagedSlot(t *testing.T) {
	whole, err := os.ReadFile(realSlot(t))
	if err != nil {
		t.Fatal(err)
	}
	at := (int64(binary.LittleEndian.Uint64(whole[40:])) + Block - 1) / Block * Block
	tests := []struct {
		name string
		do   func(b []byte) []byte
		want string
	}{
		{"empty slot", func(b []byte) []byte { clear(b); return b }, "no squashfs"},
		{"cut before the tree", func(b []byte) []byte { return b[:at] }, "verity superblock at byte"},
		{"no verity", func(b []byte) []byte { clear(b[at : at+8]); return b }, "there is none"},
		{"future version", func(b []byte) []byte { b[at+8] = 2; return b }, "version 2"},
		{"other algorithm", func(b []byte) []byte { copy(b[at+32:], "sha512"); return b }, "sha512"},
		{"other block size", func(b []byte) []byte { b[at+65] = 4; return b }, "not supported"},
		{"other amount of data", func(b []byte) []byte { b[at+72]++; return b }, "covers"},
		{"salt too long", func(b []byte) []byte { b[at+81] = 0xff; return b }, "salt"},
		{"absurd size", func(b []byte) []byte { b[47] = 0x7f; return b }, "says it has"},
		{"nothing", func([]byte) []byte { return nil }, "squashfs superblock"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadLayout(bytes.NewReader(tt.do(bytes.Clone(whole))))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestNoSalt(t *testing.T) {
	b := make([]byte, 512)
	copy(b, "verity\x00\x00")
	b[8], b[12] = 1, 1
	copy(b[32:], "sha256")
	b[65], b[69], b[72] = 0x10, 0x10, 3
	l, err := verityLayout(b)
	if err != nil || l.Salt != "-" || l.DataBlocks != 3 {
		t.Errorf("%+v, %v", l, err)
	}
	b[80] = 2
	b[88], b[89] = 0xab, 0xcd
	if l, err := verityLayout(b); err != nil || l.Salt != hex.EncodeToString(b[88:90]) {
		t.Errorf("%+v, %v", l, err)
	}
}
