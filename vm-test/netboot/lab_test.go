package netboot

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/vm-test/netns"
)

// modeVariable chooses how much is tested.
const modeVariable = "SLIPWAY_NETBOOT"

// limit bounds every wait. An install and a first boot take some three minutes when
// nobody else computes; how long they take decides nothing.
const limit = 15 * time.Minute

const (
	profilePath = "../../profiles/lab.yaml"
	keyPath     = "../testdata/lab_ed25519"
	nodeName    = "n1"
	address     = "10.0.2.2/24" // of pxed: the lab's gateway
)

func TestMain(m *testing.M) { os.Exit(netns.Main(m)) }

// full skips a test of the long form.
func full(t *testing.T) {
	t.Helper()
	if os.Getenv(modeVariable) != "full" {
		t.Skip(modeVariable + "=full runs this")
	}
}

// lab is a network of its own, with what its profile and its build promise.
type lab struct {
	profilePath string
	profile     cluster.Cluster
	node        cluster.Node
	index       artifact.Index
	images      string
	bin         string
	dir         string
	bridge      string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return newLabOf(t, profilePath, place(t, "SLIPWAY_IMAGE_DIR", "../../out/lab"))
}

// newLabOf is a lab with a profile and a build of it.
func newLabOf(t *testing.T, profile, images string) *lab {
	t.Helper()
	l := &lab{dir: t.TempDir(), profilePath: profile, images: images, bin: place(t, "SLIPWAY_BIN_DIR", "../../bin")}
	p, err := profilefile.Load(profile)
	if err != nil {
		t.Fatal(err)
	}
	l.profile, l.node = p.Cluster, p.Cluster.Nodes[0]
	if l.index, err = artifact.Decode(read(t, filepath.Join(l.images, artifact.IndexName))); err != nil {
		t.Fatalf("%v\nhint: run make build image", err)
	}
	l.bridge = netns.Bridge(t, address)
	return l
}

// place is a directory that a variable may name.
func place(t *testing.T, variable, usual string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		dir = usual
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tool runs a program of the host that must succeed and returns what it said.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: name, Args: args})
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// sum is the SHA-256 of a whole file: of a raw disk, of every byte of it.
func sum(t *testing.T, path string) string {
	t.Helper()
	return sumOf(t, path, 0, -1)
}

// sumOf is the SHA-256 of size bytes at an offset; -1 means up to the end.
func sumOf(t *testing.T, path string, offset, size int64) string {
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
	if size < 0 {
		size = st.Size() - offset
	}
	h := sha256.New()
	if n, err := io.Copy(h, io.NewSectionReader(f, offset, size)); err != nil || n != size {
		t.Fatalf("reading %s: %d of %d bytes, %v", path, n, size, err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// background starts a program that lasts as long as the test, and dies with it.
func background(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // it is ours; an error means that it has ended
		cmd.Wait()
	})
}

// rawImage is the build's disk image.
func (l *lab) rawImage(t *testing.T) string {
	t.Helper()
	for _, f := range l.index.Files {
		if f.Role == artifact.RoleDiskRaw {
			return filepath.Join(l.images, f.Name)
		}
	}
	t.Fatal("the build has no raw image")
	return ""
}
