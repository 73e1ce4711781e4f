package fatimage

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/hosttool"
)

const mib = 1 << 20

func esp() Spec {
	return Spec{
		Label: "SLIPWAY-ESP", Seed: "plan", Type: FAT32, Size: 512 * mib, Epoch: 1700000001,
		Entries: []Entry{
			{Path: "loader/entries/slot-a+3.conf", Content: []byte("title a\n")},
			{Path: "EFI/BOOT/BOOTX64.EFI", Content: bytes.Repeat([]byte("MZ"), 50000)},
			{Path: "loader/loader.conf", Content: []byte("timeout 3\n")},
			{Path: "empty", Content: nil},
		},
	}
}

func seed() Spec {
	return Spec{Label: "CIDATA", Seed: "n1", Type: FAT16, Size: 16 * mib, Epoch: 1700000000,
		Entries: []Entry{{Path: "user-data", Content: []byte("#cloud-config\n")}, {Path: "meta-data", Content: []byte("{}\n")}}}
}

func create(t *testing.T, path string, s Spec) []byte {
	t.Helper()
	if err := Create(t.Context(), path, s); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// read returns a file of an image as mtools, a foreign reader, sees it.
func read(t *testing.T, image, name string) string {
	t.Helper()
	out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: "mtype", Args: []string{"-i", image, "::/" + name}})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestRead(t *testing.T) {
	spec, path := seed(), filepath.Join(t.TempDir(), "disk")
	content := bytes.Repeat([]byte{0, 13, 10, 26, 255}, mib) // nothing is taken for text
	spec.Entries = append(spec.Entries, Entry{Path: "dir/a Name.bin", Content: content})
	const offset = 3 * mib
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, offset+spec.Size); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), path, offset, spec); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := Read(t.Context(), path, offset, "dir/a Name.bin", &got); err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
	for _, name := range []string{"dir/none", "../x", "*"} {
		if err := Read(t.Context(), path, offset, name, &got); err == nil || !strings.Contains(err.Error(), "reading "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func fsck(t *testing.T, path string) {
	t.Helper()
	out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: "fsck.vfat", Args: []string{"-n", "-v", path}})
	if err != nil || strings.Contains(string(out), "differ") {
		t.Errorf("fsck.vfat: %v\n%s", err, out)
	}
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	spec := esp()
	source := filepath.Join(dir, "kernel")
	if err := os.WriteFile(source, bytes.Repeat([]byte("kernel"), mib), 0o400); err != nil {
		t.Fatal(err)
	}
	spec.Entries = append(spec.Entries, Entry{Path: "linux-6.12.117+deb13-cloud-amd64", Source: source})
	for name, s := range map[string]Spec{
		"esp":      spec,
		"esp 4096": with(spec, func(s *Spec) { s.SectorSize = 4096 }),
		"seed":     seed(),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.img")
			create(t, path, s)
			fsck(t, path)
			for _, e := range s.Entries {
				want := string(e.Content)
				if e.Source != "" {
					want = strings.Repeat("kernel", mib)
				}
				if read(t, path, e.Path) != want {
					t.Errorf("%s does not read back", e.Path)
				}
			}
			var st syscall.Stat_t
			if err := syscall.Stat(path, &st); err != nil || st.Blocks*512 > 16*mib {
				t.Errorf("image occupies %d bytes (%v)", st.Blocks*512, err)
			}
		})
	}
}

func with(s Spec, change func(*Spec)) Spec {
	change(&s)
	return s
}

// The environment must not reach the image: time zone, umask, path and order of
// the entries. That the clock does not is checked against the bytes themselves,
// because two runs may fall into the same two seconds.
func TestSameBytes(t *testing.T) {
	spec := seed()
	want := create(t, filepath.Join(t.TempDir(), "a.img"), spec)

	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("MTOOLSRC", "/nonexistent")
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	slices.Reverse(spec.Entries)
	dir := filepath.Join(t.TempDir(), "with space @@1")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := create(t, filepath.Join(dir, "another-name"), spec); !bytes.Equal(got, want) {
		t.Error("the same spec gave other bytes")
	}
	if got := create(t, filepath.Join(dir, "other"), with(spec, func(s *Spec) { s.Seed = "n2" })); bytes.Equal(got[:512], want[:512]) {
		t.Error("another seed gave the same volume serial number")
	}
}

// Every time in a directory entry is the epoch of the spec or, for the label,
// the constant of mkfs.vfat --invariant.
func TestNoWallClock(t *testing.T) {
	data := create(t, filepath.Join(t.TempDir(), "a.img"), seed())
	const root = 34816 // (4 reserved + 2*32 FAT sectors) * 512, as mkfs.vfat lays out 16 MiB
	const date = (2023-1980)<<9 | 11<<5 | 14
	entries := 0
	for e := root; data[e] != 0; e += 32 {
		attr := data[e+11]
		if attr == 0x0f || attr&0x08 != 0 { // long name, label
			continue
		}
		entries++
		for _, at := range []int{16, 18, 24} { // created, accessed, written
			if got := int(data[e+at]) | int(data[e+at+1])<<8; got != date {
				t.Errorf("entry %q has date %#x at %d, want %#x", data[e:e+11], got, at, date)
			}
		}
	}
	if entries != 2 {
		t.Errorf("%d files in the root directory", entries)
	}
}

func TestWriteAtOffset(t *testing.T) {
	dir := t.TempDir()
	want := create(t, filepath.Join(dir, "alone.img"), seed())
	disk := filepath.Join(dir, "disk.img")
	if err := os.WriteFile(disk, bytes.Repeat([]byte{0xa5}, 24*mib), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), disk, 2*mib, seed()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(disk)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got[2*mib:18*mib], want) {
		t.Error("the partition differs from the stand-alone image")
	}
	for _, rest := range [][]byte{got[:2*mib], got[18*mib:]} {
		if bytes.Count(rest, []byte{0xa5}) != len(rest) {
			t.Error("bytes outside of the partition were written")
		}
	}
	if len(got) != 24*mib {
		t.Errorf("the file has %d bytes now", len(got))
	}
}

func TestRefuses(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"label":              func(s *Spec) { s.Label = "too-long-for-fat" },
		"no such type":       func(s *Spec) { s.Type = 12 },
		"sector size":        func(s *Spec) { s.SectorSize = 1024 },
		"multiple of 4096":   func(s *Spec) { s.Size = 1000 },
		"before 1980":        func(s *Spec) { s.Epoch = 0 },
		"same name":          func(s *Spec) { s.Entries = []Entry{{Path: "A"}, {Path: "a"}} },
		"are the same":       func(s *Spec) { s.Entries = []Entry{{Path: "A/b"}, {Path: "a/c"}} },
		"not a name":         func(s *Spec) { s.Entries = []Entry{{Path: "what?"}} },
		`"dot." is not`:      func(s *Spec) { s.Entries = []Entry{{Path: "dot."}} },
		"clean relative":     func(s *Spec) { s.Entries = []Entry{{Path: "../a"}} },
		"no such file":       func(s *Spec) { s.Entries = []Entry{{Path: "a", Source: "/nonexistent"}} },
		"FAT32 needs 65525":  func(s *Spec) { s.Type = FAT32; s.Size = 20 * mib },
		"writing big: mcopy": func(s *Spec) { s.Entries = []Entry{{Path: "big", Content: make([]byte, 17*mib)}} },
	} {
		path := filepath.Join(t.TempDir(), "a.img")
		err := Create(t.Context(), path, with(seed(), change))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
			t.Errorf("%s: %d files left behind", want, len(left))
		}
	}
}

func TestWriteRefusesPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "short.img")
	if err := os.WriteFile(path, make([]byte, mib), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), path, 0, seed()); err == nil || !strings.Contains(err.Error(), "ends at byte") {
		t.Errorf("short file: got %v", err)
	}
	if err := Write(t.Context(), path, 100, seed()); err == nil || !strings.Contains(err.Error(), "multiple of the sector") {
		t.Errorf("crooked offset: got %v", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "a.img")
	if err := Create(ctx, path, seed()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a cancelled run left an image")
	}
}

func TestFromTree(t *testing.T) {
	tree, err := fstree.New(fstree.File("d/a", 0o644, []byte("x")), fstree.Symlink("l", "d/a"))
	if err != nil {
		t.Fatal(err)
	}
	if got := FromTree(tree); len(got) != 1 || got[0].Path != "d/a" || string(got[0].Content) != "x" {
		t.Errorf("got %+v", got)
	}
}
