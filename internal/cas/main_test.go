package cas_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/digest"
)

// TestMain lets the test binary play other processes: ones that are killed, and
// one whose disk is small.
func TestMain(m *testing.M) {
	play := map[string]func(string){"blob": playBlob, "stage": playStage, "part": playPart, "race": playRace, "full": playFull}
	if do := play[os.Getenv("CAS_TEST_PLAY")]; do != nil {
		do(os.Getenv("CAS_TEST_DIR"))
		return
	}
	os.Exit(m.Run())
}

// blob is size bytes that look like nothing else.
func blob(seed byte, size int) []byte {
	b := make([]byte, 0, size+sha256.Size)
	sum := sha256.Sum256([]byte{seed})
	for len(b) < size {
		b = append(b, sum[:]...)
		sum = sha256.Sum256(sum[:])
	}
	return b[:size]
}

func must(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// ready tells the parent that this process is in the middle of its work, and
// waits to be killed.
func ready() {
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
}

// halfway gives half of b, and then waits to be killed.
type halfway struct{ b []byte }

func (h *halfway) Read(p []byte) (int, error) {
	if len(h.b) == 0 {
		ready()
	}
	n := copy(p, h.b)
	h.b = h.b[n:]
	return n, nil
}

func playBlob(dir string) {
	c, err := cas.Open(dir)
	must(err)
	b := blob(1, 1<<20)
	must(c.Put(context.Background(), digest.Of(b), int64(len(b)), &halfway{b[:len(b)/2]}))
}

func playStage(dir string) {
	c, err := cas.Open(dir)
	must(err)
	_, err = c.BuildStage(context.Background(), "squash", digest.Of([]byte("key")), func(dir string) error {
		must(os.WriteFile(dir+"/half", blob(1, 1<<16), 0o644))
		ready()
		return nil
	})
	must(err)
}

func playPart(dir string) {
	c, err := cas.Open(dir)
	must(err)
	b := blob(1, 1<<20)
	p, err := c.Partial(context.Background(), digest.Of(b), int64(len(b)))
	must(err)
	_, err = p.Write(b[:len(b)/2])
	must(err)
	ready()
}

// playRace puts the same blobs and stages as its siblings do.
func playRace(dir string) {
	c, err := cas.Open(dir)
	must(err)
	for i := range byte(20) {
		b := blob(i, 100_000)
		p, err := c.Partial(context.Background(), digest.Of(b), int64(len(b)))
		must(err)
		if p != nil {
			must(p.Reset())
			_, err = p.Write(b)
			must(err)
			must(p.Commit())
			must(p.Close())
		}
		other := blob(i+100, 50_000)
		_, _, err = c.Add(context.Background(), &slice{other})
		must(err)
		out, err := c.BuildStage(context.Background(), "s", digest.Of([]byte{i}), func(dir string) error {
			return os.WriteFile(dir+"/file", b, 0o644)
		})
		must(err)
		got, err := os.ReadFile(out + "/file")
		must(err)
		must(digest.Check(digest.Of(b), digest.Of(got)))
	}
	fmt.Println("done")
}

type slice struct{ b []byte }

func (s *slice) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b)
	s.b = s.b[n:]
	return n, nil
}

// playFull runs in its own user and mount namespace.
func playFull(dir string) {
	must(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	c, err := cas.Open(dir)
	must(err)
	b := blob(1, 4<<20)
	tell := func(what string, err error) {
		entries, rerr := os.ReadDir(dir + "/tmp")
		must(rerr)
		fmt.Printf("%s: %v (hint %t, left %d)\n", what, err, hinted(err), len(entries))
	}
	tell("room", c.Room(4<<20))
	tell("put", c.Put(context.Background(), digest.Of(b), int64(len(b)), &slice{b}))
	_, err = c.BuildStage(context.Background(), "s", digest.Of(b), func(dir string) error {
		return os.WriteFile(dir+"/file", b, 0o644)
	})
	tell("stage", err)
	p, err := c.Partial(context.Background(), digest.Of(b), int64(len(b)))
	must(err)
	_, err = p.Write(b)
	tell("part", err)
}
