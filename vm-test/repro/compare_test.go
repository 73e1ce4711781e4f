package repro

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
)

// files lists the files below dir by their paths in it.
func files(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		names = append(names, rel)
		return err
	})
	return names, err
}

// differences says in what two builds differ: for each file, from where on.
func differences(a, b string) ([]string, error) {
	inA, err := files(a)
	if err != nil {
		return nil, err
	}
	inB, err := files(b)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(inA, inB) {
		return []string{fmt.Sprintf("files %q and %q", inA, inB)}, nil
	}
	var found []string
	for _, name := range inA {
		at, err := firstByte(filepath.Join(a, name), filepath.Join(b, name))
		if err != nil {
			return nil, err
		}
		if at >= 0 {
			found = append(found, fmt.Sprintf("%s from byte %d on", name, at))
		}
	}
	return found, nil
}

// firstByte is where two files begin to differ, -1 if they do not.
func firstByte(a, b string) (int64, error) {
	fa, err := os.Open(a)
	if err != nil {
		return 0, err
	}
	defer fa.Close()
	fb, err := os.Open(b)
	if err != nil {
		return 0, err
	}
	defer fb.Close()
	bufA, bufB := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); ; {
		n, errA := io.ReadFull(fa, bufA)
		m, errB := io.ReadFull(fb, bufB)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			i := 0
			for i < min(n, m) && bufA[i] == bufB[i] {
				i++
			}
			return at + int64(i), nil
		}
		if errA != nil || errB != nil { // the end: the lengths are equal
			return -1, nil
		}
		at += int64(n)
	}
}

// readIndex reads the index of a build.
func readIndex(t *testing.T, dir string) artifact.Index {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, artifact.IndexName))
	must(t, err)
	index, err := artifact.Decode(text)
	must(t, err)
	return index
}

// checkComplete fails unless dir holds everything that its index names, and
// nothing else. The raw image is taken by its size: its digest is one of chunks.
func checkComplete(t *testing.T, dir string) {
	t.Helper()
	index := readIndex(t, dir)
	want := []string{artifact.IndexName, artifact.SignatureName}
	for _, f := range index.Files {
		want = append(want, filepath.FromSlash(f.Name))
		st, err := os.Stat(filepath.Join(dir, f.Name))
		if err != nil || st.Size() != f.Size {
			t.Errorf("%s is not complete: %v, %v", f.Name, st, err)
			continue
		}
		if f.Role == artifact.RoleDiskRaw {
			continue
		}
		if got := fileDigest(t, filepath.Join(dir, f.Name)); got != f.Digest {
			t.Errorf("%s has digest %s, the index says %s", f.Name, got, f.Digest)
		}
	}
	got, err := files(dir)
	must(t, err)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("files %q, the index names %q", got, want)
	}
}

func fileDigest(t *testing.T, path string) digest.Digest {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	w := digest.NewWriter(io.Discard)
	_, err = io.Copy(w, f)
	must(t, err)
	return w.Sum()
}
