package signature

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/machine"
)

const size = 160 << 20

// blank makes an empty image.
func blank(t *testing.T, n int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, n); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader("secret\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func probe(t *testing.T, path string) []machine.Signature {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return Probe(f, st.Size(), 512)
}

// blkid is the other reader: type, label and UUID.
func blkid(t *testing.T, path string) machine.Signature {
	t.Helper()
	out, err := exec.Command("blkid", "-p", "-o", "export", path).Output()
	if err != nil {
		t.Fatalf("blkid does not know it either: %v", err)
	}
	var s machine.Signature
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.ReplaceAll(value, `\`, "")
		switch key {
		case "TYPE":
			s.Type = value
		case "LABEL":
			s.Label = value
		case "UUID":
			s.UUID = value
		}
	}
	return s
}

// What other programs write is recognised as blkid recognises it.
func TestForeignMakers(t *testing.T) {
	src := t.TempDir()
	if err := os.WriteFile(filepath.Join(src, "file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]string{
		"ext4":     "mkfs.ext4 -q -F -L old DISK",
		"ext3":     "mkfs.ext3 -q -F -L old DISK",
		"ext2":     "mkfs.ext2 -q -F -L old DISK",
		"xfs":      "mkfs.xfs -q -f -L old --unsupported DISK",
		"btrfs":    "mkfs.btrfs -q -f -L old DISK",
		"fat12":    "mkfs.vfat -F 12 -n OLD DISK 16384",
		"fat16":    "mkfs.vfat -F 16 -n OLD DISK",
		"fat32":    "mkfs.vfat -F 32 -n OLD DISK",
		"exfat":    "mkfs.exfat DISK",
		"ntfs":     "mkntfs -q -F -f DISK",
		"f2fs":     "mkfs.f2fs -q -f DISK",
		"swap":     "mkswap -q -L old DISK",
		"squashfs": "mksquashfs SRC DISK -noappend -quiet -no-progress",
		"iso9660":  "xorriso -as mkisofs -quiet -V OLD -o DISK SRC",
		"luks1":    "cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 DISK",
		"luks2":    "cryptsetup luksFormat -q --type luks2 --label old --pbkdf pbkdf2 --pbkdf-force-iterations 1000 DISK",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := blank(t, size*2)
			words := strings.Fields(strings.NewReplacer("DISK", path, "SRC", src).Replace(command))
			run(t, words[0], words[1:]...)
			compare(t, path)
		})
	}
}

// compare holds the only signature against blkid's.
func compare(t *testing.T, path string) {
	t.Helper()
	got, want := probe(t, path), blkid(t, path)
	if len(got) != 1 {
		t.Fatalf("found %+v, blkid has %+v", got, want)
	}
	// Not every format's label and UUID is read; the type always is.
	if got[0].Type != want.Type || got[0].Label != "" && got[0].Label != want.Label || got[0].UUID != "" && !strings.EqualFold(got[0].UUID, want.UUID) {
		t.Errorf("found %+v, blkid has %+v", got[0], want)
	}
}

func write(t *testing.T, path string, data []byte, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, at); err != nil {
		t.Fatal(err)
	}
}

func TestLVM(t *testing.T) {
	packed, err := os.Open("testdata/lvm-pv.gz") // as pvcreate wrote it
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	path := blank(t, 8<<20)
	write(t, path, data, 0)
	compare(t, path)
}

// raid1 is a superblock of version 1 (linux/raid/md_p.h) for a place.
func raid1(at int64) []byte {
	b, le := make([]byte, 4096), binary.LittleEndian
	le.PutUint32(b, raidMagic)
	le.PutUint32(b[4:], 1)
	copy(b[16:], "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10")
	copy(b[32:], "host:old")
	le.PutUint64(b[144:], uint64(at/512)) // super_offset
	var sum uint64
	for i := 0; i < 256; i += 4 {
		sum += uint64(le.Uint32(b[i:]))
	}
	le.PutUint32(b[216:], uint32(sum)+uint32(sum>>32))
	return b
}

// raid0 is one of version 0.90.
func raid0() []byte {
	b, le := make([]byte, 4096), binary.LittleEndian
	le.PutUint32(b, raidMagic)
	le.PutUint32(b[8:], 90)
	copy(b[20:], "\x04\x03\x02\x01")
	copy(b[52:], "\x08\x07\x06\x05\x0c\x0b\x0a\x09\x10\x0f\x0e\x0d")
	var sum uint64
	for i := 0; i < 4096; i += 4 {
		sum += uint64(le.Uint32(b[i:]))
	}
	le.PutUint32(b[152:], uint32(sum)+uint32(sum>>32))
	return b
}

func TestRAIDMembers(t *testing.T) {
	for name, tt := range map[string]struct {
		at    int64
		super []byte
	}{
		"1.1":  {0, raid1(0)},
		"1.2":  {4096, raid1(4096)},
		"1.0":  {(size/512 - 16) &^ 7 * 512, raid1((size/512 - 16) &^ 7 * 512)},
		"0.90": {size - 64<<10, raid0()},
	} {
		path := blank(t, size)
		write(t, path, tt.super, tt.at)
		got := probe(t, path)
		if len(got) != 1 || got[0].Type != raidType || blkid(t, path).Type != raidType {
			t.Errorf("%s: %+v", name, got)
		}
		if name != "0.90" && (got[0].Label != "host:old" || got[0].UUID != "01020304-0506-0708-090a-0b0c0d0e0f10") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestZFS(t *testing.T) {
	for _, label := range []int64{0, 256 << 10, size - 512<<10, size - 256<<10} {
		path := blank(t, size)
		uber := make([]byte, 1024)
		binary.LittleEndian.PutUint64(uber, uberMagic)
		for i := range int64(8) {
			write(t, path, uber, label+128<<10+i*1024)
		}
		if got := probe(t, path); len(got) != 1 || got[0].Type != "zfs_member" {
			t.Errorf("label at %d: %+v", label, got)
		}
	}
}

func TestPartitions(t *testing.T) {
	path := blank(t, size)
	run(t, "sgdisk", "-n", "1:2048:+32M", "-c", "1:slipway-a", "-n", "2:0:+16M", "-c", "2:data", path)
	fs := blank(t, 16<<20)
	run(t, "mkfs.ext4", "-q", "-F", "-L", "state", fs)
	content, err := os.ReadFile(fs)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, content, 33<<20)
	check := func(what string) {
		t.Helper()
		var got []string
		for _, s := range probe(t, path) {
			got = append(got, strings.TrimSpace(strings.Join([]string{string(rune('0' + s.Partition)), s.Type, s.Label}, " ")))
		}
		if text := strings.Join(got, ", "); text != "0 gpt, 1 partition slipway-a, 2 partition data, 2 ext4 state" {
			t.Errorf("%s: %s", what, text)
		}
	}
	check("GPT")
	write(t, path, make([]byte, 1<<20), 0)
	check("backup GPT alone")
}

func TestMBR(t *testing.T) {
	path := blank(t, size)
	cmd := exec.Command("sfdisk", "-q", path)
	cmd.Stdin = strings.NewReader("label: dos\nsize=16M,type=83\nsize=100M,type=5\nsize=16M,type=82\nsize=8M,type=82\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var numbers []int
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := device{f, size}
	for _, p := range d.table(512).parts {
		numbers = append(numbers, p.number)
	}
	if len(numbers) == 0 || numbers[0] != 1 {
		t.Errorf("partitions %v", numbers)
	}
	if got := probe(t, path); len(got) != 1 || got[0].Type != "dos" {
		t.Errorf("found %+v", got)
	}
}

func TestBlankAndUnknown(t *testing.T) {
	if got := probe(t, blank(t, size)); got != nil {
		t.Errorf("a blank disk holds %+v", got)
	}
	path := blank(t, 8<<20)
	write(t, path, bytes.Repeat([]byte{0xff}, 8<<20), 0)
	if got := probe(t, path); got != nil {
		t.Errorf("an erased flash holds %+v", got)
	}
	write(t, path, []byte("somebody's data"), 4<<20)
	write(t, path, []byte("somebody's data"), 5000)
	if got := probe(t, path); len(got) != 1 || got[0].Type != Unrecognised {
		t.Errorf("unknown content is %+v", got)
	}
	if got := Probe(bytes.NewReader(nil), 0, 0); got != nil {
		t.Errorf("nothing holds %+v", got)
	}
}

// Whatever is on a disk, looking at it ends and says things that fit a report.
func FuzzProbe(f *testing.F) {
	f.Add([]byte("EFI PART"), uint16(512))
	f.Add(raid1(0), uint16(0))
	sum := crc32.ChecksumIEEE(nil)
	f.Add(binary.LittleEndian.AppendUint32([]byte("LABELONE"), sum), uint16(512))
	f.Fuzz(func(t *testing.T, data []byte, at uint16) {
		disk := make([]byte, 1<<20)
		copy(disk[min(int(at), len(disk)):], data)
		disk[510], disk[511] = 0x55, 0xaa
		for _, s := range Probe(bytes.NewReader(disk), int64(len(disk)), 512) {
			if s.Type == "" || s.Partition < 0 || strings.ContainsFunc(s.Label+s.UUID, func(c rune) bool { return c < ' ' }) {
				t.Errorf("%+v", s)
			}
		}
	})
}
