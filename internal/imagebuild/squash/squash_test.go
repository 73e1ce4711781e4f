package squash

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/hosttool"
)

func sample(w io.Writer) error {
	tw := tar.NewWriter(w)
	for i := range 50 {
		data := bytes.Repeat([]byte(strconv.Itoa(i)), 10_000)
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "./f" + strconv.Itoa(i), Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(1, 0)}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(data); err != nil {
			return err
		}
	}
	return tw.Close()
}

func request(t *testing.T) Request {
	return Request{Path: filepath.Join(t.TempDir(), "slot"), Level: 3, Epoch: 1_700_000_000, UUID: "8F8C7F9A-9F43-8C3F-8E1E-3C2B7A6D5E4F", Salt: digest.Of([]byte("salt"))}
}

func TestBuildIsReproducibleAndVerifies(t *testing.T) {
	req := request(t)
	one, err := Build(t.Context(), req, sample)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Build(t.Context(), request(t), sample)
	if err != nil {
		t.Fatal(err)
	}
	if one != two {
		t.Errorf("two builds differ: %+v and %+v", one, two)
	}
	if one.Squashfs%BlockSize != 0 || one.Content <= one.Squashfs {
		t.Errorf("sizes are wrong: %+v", one)
	}
	// The foreign reader of both parts.
	verify := func() error {
		return hosttool.Run(t.Context(), hosttool.Cmd{Name: "veritysetup", Args: []string{"verify", req.Path, req.Path, one.RootHash, "--hash-offset=" + strconv.FormatInt(one.Squashfs, 10)}})
	}
	if err := verify(); err != nil {
		t.Error(err)
	}
	if err := hosttool.Run(t.Context(), hosttool.Cmd{Name: "unsquashfs", Args: []string{"-s", req.Path}}); err != nil {
		t.Error(err)
	}
	flip(t, req.Path, one.Squashfs/2)
	if verify() == nil {
		t.Error("a flipped byte went unnoticed")
	}
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0xff
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

func TestBuildReportsTheTreesOwnError(t *testing.T) {
	broken := errors.New("the tree broke")
	_, err := Build(t.Context(), request(t), func(w io.Writer) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
