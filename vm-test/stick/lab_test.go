package stick

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/vm-test/qemu"
)

// limit bounds every wait. An install and a first boot take some three minutes when
// nobody else computes; how long they take decides nothing.
const limit = 15 * time.Minute

const (
	systemSize = 3 << 30 // bytes
	memory     = 1536    // MiB
)

// lab is a build for real hardware and its profile.
type lab struct {
	profile string
	images  string
	bin     string
	node    cluster.Node // that the machine is
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Getenv("SLIPWAY_NETBOOT") != "full" {
		t.Skip("SLIPWAY_NETBOOT=full runs this")
	}
	metal := place(t, "SLIPWAY_METAL_DIR", "../../out/netboot-metal")
	l := &lab{
		profile: filepath.Join(metal, "profiles/metal.yaml"), images: filepath.Join(metal, "image"), bin: place(t, "SLIPWAY_BIN_DIR", "../../bin"),
	}
	p, err := profilefile.Load(l.profile)
	if err != nil {
		t.Fatalf("%v\nhint: run scripts/metal-image", err)
	}
	l.node = p.Cluster.Nodes[0]
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

// stick is an installer stick in a file.
type stick struct{ path string }

// write makes a stick as a person would.
func (l *lab) write(t *testing.T, args ...string) stick {
	t.Helper()
	s := stick{filepath.Join(t.TempDir(), "stick.img")}
	run(t, filepath.Join(l.bin, "imagebuild"), append([]string{"usb", l.images, "--install", "-p", l.profile, "-O", s.path}, args...)...)
	return s
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// file reads a document of a node from the stick, with a foreign reader.
func (s stick) file(t *testing.T, name string) string {
	t.Helper()
	offset := int64(disklayout.FirstOffset + disklayout.MinESP)
	return run(t, "mtype", "-i", s.path+"@@"+strconv.FormatInt(offset, 10), "::/nodes/n1/"+name)
}

func (s stick) receipt(t *testing.T) machine.Receipt {
	t.Helper()
	var r machine.Receipt
	if err := json.Unmarshal([]byte(s.file(t, "receipt.json")), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// blank makes a system disk of zeros for node n1.
func (l *lab) blank(t *testing.T) qemu.Disk {
	t.Helper()
	path := filepath.Join(t.TempDir(), "system.raw")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(systemSize); err != nil {
		t.Fatal(err)
	}
	return qemu.Disk{Path: path, Format: "raw", Serial: l.node.System.Serial}
}

func sum(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// powerOn starts the machine of node n1, whose firmware tries the stick first.
func (l *lab) powerOn(t *testing.T, s stick, nvram string, disks ...qemu.Disk) *qemu.VM {
	t.Helper()
	return l.start(t, nvram, append([]qemu.Disk{{Path: s.path, Format: "raw", Serial: "STICK-1", USB: true}}, disks...))
}

func (l *lab) start(t *testing.T, nvram string, disks []qemu.Disk) *qemu.VM {
	t.Helper()
	accel := qemu.TCG // the same everywhere
	if a := qemu.Accel(os.Getenv(qemu.AccelVariable)); a != "" {
		accel = a
	}
	v, err := qemu.Start(t.Context(), qemu.Config{
		Name: "n1", Dir: t.TempDir(), Accel: accel, Memory: memory, NVRAM: nvram,
		Disks: disks,
		NICs:  []qemu.NIC{{MAC: string(l.node.Interfaces[0].MAC)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		v.Close()
		if t.Failed() {
			t.Logf("the console ends in:\n%s", v.Serial[0].Tail())
		}
	})
	return v
}

// sees waits for words on the machine's console.
func sees(t *testing.T, v *qemu.VM, words string) string {
	t.Helper()
	m, err := v.Serial[0].Expect(t.Context(), qemu.Like(words)+`[^\r\n]*`, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%5.0f s: %s", time.Since(v.Started).Seconds(), m[0])
	return m[0]
}

func pull(t *testing.T, v *qemu.VM) {
	t.Helper()
	if err := v.PullPlug(t.Context()); err != nil {
		t.Fatal(err)
	}
}
