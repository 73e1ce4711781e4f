package chunk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/artifact/unpack"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/progress"
)

// image is a sparse file: data here and there, one chunk of written zeros, a data
// extent that is shorter than a chunk, and an end that is no multiple of one.
func image(t testing.TB, size int64, data ...int64) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "disk.raw"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 300<<10)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	for _, at := range data {
		if _, err := f.WriteAt(noise[:min(int64(len(noise)), size-at)], at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteAt(make([]byte, Size), 2*Size); err != nil {
		t.Fatal(err)
	}
	return f
}

func pack(t testing.TB, f *os.File) ([]byte, artifact.Disk, digest.Digest) {
	t.Helper()
	var out bytes.Buffer
	chunks, raw, packed, err := Pack(context.Background(), f, &out, progress.Nop{})
	if err != nil {
		t.Fatal(err)
	}
	if packed != digest.Of(out.Bytes()) {
		t.Error("digest of the compressed file is wrong")
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), artifact.Disk{Size: st.Size(), SectorSize: 512, ChunkSize: Size, Chunks: chunks}, raw
}

func sum(t testing.TB, r io.Reader) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestZstdRestoresTheImage(t *testing.T) {
	const size = 9*Size + 12345
	f := image(t, size, 0, Size-1000, 5*Size+7, size-100)
	packed, disk, raw := pack(t, f)
	cmd := exec.Command("zstd", "-dc")
	cmd.Stdin = bytes.NewReader(packed)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := sum(t, io.NewSectionReader(f, 0, size))
	if got := sum(t, bytes.NewReader(out)); got != want {
		t.Error("zstd -dc gives another image")
	}
	var holes []int
	for i, c := range disk.Chunks {
		if c.Hole {
			holes = append(holes, i)
		}
	}
	if fmt.Sprint(holes) != "[2 3 4 6 7 8]" {
		t.Errorf("holes are %v", holes)
	}
	if raw != artifact.TreeDigest(size, Size, disk.Chunks) || raw.IsZero() {
		t.Error("raw digest is not the tree digest")
	}
	if n := disk.PackedSize(); n != int64(len(packed)) {
		t.Errorf("frames add up to %d of %d bytes", n, len(packed))
	}
}

func TestReaderRestoresTheImage(t *testing.T) {
	const size = 6*Size + 1
	f := image(t, size, 0, 4*Size-10)
	packed, disk, _ := pack(t, f)
	r, err := unpack.NewReader(bytes.NewReader(packed), disk)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make([]byte, size)
	for {
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		copy(got[c.Offset:], c.Data)
	}
	if sum(t, bytes.NewReader(got)) != sum(t, io.NewSectionReader(f, 0, size)) {
		t.Error("another image")
	}
}

func TestResultDependsOnContentAlone(t *testing.T) {
	const size = 5*Size + 77
	sparse := image(t, size, 10, 3*Size)
	want, disk, digestOf := pack(t, sparse)
	dense, err := os.Create(filepath.Join(t.TempDir(), "dense"))
	if err != nil {
		t.Fatal(err)
	}
	defer dense.Close()
	if _, err := io.Copy(dense, io.NewSectionReader(sparse, 0, size)); err != nil {
		t.Fatal(err)
	}
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	for _, procs := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(procs)
		got, again, d := pack(t, dense)
		if !bytes.Equal(got, want) || d != digestOf || fmt.Sprint(again) != fmt.Sprint(disk) {
			t.Errorf("GOMAXPROCS=%d gives another result", procs)
		}
	}
}

func TestEmptyAndTinyImages(t *testing.T) {
	for _, size := range []int64{0, 1, 4096} {
		f, err := os.Create(filepath.Join(t.TempDir(), "x"))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		_, disk, _ := pack(t, f)
		if want := min(size, 1); int64(len(disk.Chunks)) != want {
			t.Errorf("%d bytes: %d chunks", size, len(disk.Chunks))
		}
		f.Close()
	}
}

func TestDamageIsFoundAndNamed(t *testing.T) {
	f := image(t, 4*Size, 0, Size)
	packed, disk, _ := pack(t, f)
	read := func(data []byte) error {
		r, err := unpack.NewReader(bytes.NewReader(data), disk)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for {
			c, err := r.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if c.Data != nil && digest.Of(c.Data) != disk.Chunks[c.Index].Raw {
				t.Fatal("an unchecked chunk was handed on")
			}
		}
	}
	flip := func(at int64) []byte {
		b := bytes.Clone(packed)
		b[at] ^= 0x10
		return b
	}
	for want, data := range map[string][]byte{
		"chunk 0 (bytes 0 to 4194303, protective MBR): compressed: digest mismatch": flip(50),
		"chunk 1 (bytes 4194304 to 8388607":                                         flip(disk.Chunks[1].Offset),
		"chunk 3 (bytes 12582912":                                                   flip(disk.Chunks[3].Offset + 5),
		"more data after the last chunk":                                            append(bytes.Clone(packed), 0),
		"unexpected EOF":                                                            packed[:len(packed)-1],
	} {
		if err := read(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	disk.Chunks[1].Raw = digest.Of(nil)
	if err := read(packed); !errors.Is(err, digest.ErrMismatch) {
		t.Errorf("another raw digest: %v", err)
	}
}

func TestBombIsRefused(t *testing.T) {
	f := image(t, 4*Size, 0)
	packed, disk, _ := pack(t, f)
	disk.ChunkSize, disk.Size = 1<<20, 4<<20
	dec, err := unpack.NewDecoder(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	c := disk.Chunks[3]
	if _, err := dec.Decode(3, packed[c.Offset:c.Offset+c.Size]); err == nil {
		t.Error("a frame larger than a chunk was decompressed")
	}
}

type failing struct{ after int }

func (w *failing) Write(p []byte) (int, error) {
	if w.after--; w.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestFailuresEndThePack(t *testing.T) {
	f := image(t, 40*Size, 0, 9*Size, 20*Size)
	_, _, _, err := Pack(context.Background(), f, &failing{after: 7}, progress.Nop{})
	if err == nil || !strings.Contains(err.Error(), "writing chunk 7: disk full") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, _, err := Pack(ctx, f, io.Discard, progress.Nop{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkPack(b *testing.B) {
	f := image(b, 256*Size)
	noise := make([]byte, 1<<20)
	src := rand.NewChaCha8([32]byte{2})
	for i := range int64(160) {
		src.Read(noise)
		if _, err := f.WriteAt(noise, i<<20); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(160 << 20)
	for b.Loop() {
		if _, _, _, err := Pack(context.Background(), f, io.Discard, progress.Nop{}); err != nil {
			b.Fatal(err)
		}
	}
}
