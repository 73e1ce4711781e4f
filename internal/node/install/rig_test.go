package install_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/verify/buildtest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
	"github.com/slipway/slipway/internal/node/install/blockdev"
	"github.com/slipway/slipway/internal/node/install/httpsource"
	"github.com/slipway/slipway/internal/node/install/installtest"
)

// build is one build for all tests of the package; it takes a few seconds.
type build struct {
	once  sync.Once
	dir   string
	err   error
	index []byte
}

var shared = build{}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

func theBuild(t *testing.T) *build {
	t.Helper()
	shared.once.Do(func() {
		shared.dir, shared.err = os.MkdirTemp("", "install-test-*")
		if shared.err != nil {
			return
		}
		spec := buildtest.Default()
		noise := make([]byte, 14<<20)
		if _, shared.err = rand.Read(noise); shared.err != nil {
			return
		}
		spec.Root["usr/lib/noise"] = string(noise)
		if shared.err = buildtest.Build(context.Background(), shared.dir, spec); shared.err != nil {
			return
		}
		shared.index, shared.err = os.ReadFile(filepath.Join(shared.dir, artifact.IndexName))
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &shared
}

// rig is a machine with one disk, and a server that has it armed.
type rig struct {
	t      *testing.T
	server *installtest.Server
	url    string
	http   *httptest.Server
	disks  *disks
	report machine.Report
	screen *screen
	clock  *clock
	tries  int
	pause  time.Duration
	stall  time.Duration
	home   string
}

const diskSize = 3 << 30 / 2

func newRig(t *testing.T) *rig {
	t.Helper()
	b := theBuild(t)
	key, err := artifact.FormatKey(buildtest.PublicKey(), "")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, screen: &screen{}, clock: &clock{now: time.Now()}, tries: 6, stall: 20 * time.Second}
	r.server = &installtest.Server{
		Dir: b.dir, Reply: machine.Reply{Action: machine.ActionInstall, Message: "go"},
		Seed: machine.Seed{"meta-data": "instance-id: n1-x\n", "user-data": "#cloud-config\n", "network-config": "version: 2\n", "vendor-data": "#cloud-config\n{}\n"},
		Ticket: machine.Ticket{
			Format: machine.TicketFormat, ID: strings.Repeat("ab", 32), Node: "n1", Cluster: "test", Expires: time.Now().Add(time.Hour),
			Index: digest.Of(b.index), Key: strings.TrimSpace(key), System: cluster.Selector{Serial: "SYS-1"},
		},
	}
	r.http = httptest.NewServer(r.server)
	t.Cleanup(func() { r.http.Close() })
	r.url = r.http.URL
	path := filepath.Join(t.TempDir(), "disk")
	if err := makeDirty(path, diskSize); err != nil {
		t.Fatal(err)
	}
	d := machine.Disk{Name: "vda", Serial: "SYS-1", Transport: "virtio", Size: diskSize, Sector: 512}
	r.disks = &disks{paths: map[string]string{"vda": path}}
	r.report = machine.Report{Format: machine.ReportFormat, Firmware: machine.Firmware{Mode: "uefi"}, Disks: []machine.Disk{d}}
	return r
}

// makeDirty makes a sparse file with old data where the image has holes, where it
// has content, and at the end.
func makeDirty(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return err
	}
	old := bytes.Repeat([]byte("old data "), 20000)
	for _, at := range []int64{0, 1 << 20, 100 << 20, 265 << 20, 300 << 20, 350 << 20, size - int64(len(old))} {
		if _, err := f.WriteAt(old, at); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) env() install.Env {
	return install.Env{
		Screen: r.screen, Clock: r.clock, Random: rand.Reader, Workers: 2, Home: r.home,
		Sleep: func(ctx context.Context, _ time.Duration) error {
			time.Sleep(r.pause)
			return context.Cause(ctx)
		},
		Patience: install.Patience{Tries: r.tries},
	}
}

func (r *rig) source() install.Source {
	s, err := httpsource.New(httpsource.Options{
		Server: r.url, Ticket: r.server.Ticket.ID, Client: &http.Client{Transport: httpsource.Transport()},
		Stall: r.stall, Small: 20 * time.Second,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) run() install.Result {
	r.t.Helper()
	result := install.Run(r.t.Context(), r.env(), r.source(), r.disks, r.report)
	if r.t.Failed() {
		r.t.Log(r.screen.text())
	}
	return result
}

func (r *rig) path() string { return r.disks.paths["vda"] }

// installed checks the disk with readers that share nothing with the installer.
func (r *rig) installed() {
	r.t.Helper()
	verify(r.t, r.path(), r.server)
}

func verify(t *testing.T, path string, server *installtest.Server) {
	t.Helper()
	out, err := exec.Command("sgdisk", "-v", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "No problems found") {
		t.Errorf("sgdisk -v: %v\n%s", err, out)
	}
	verifyContent(t, path, server)
}

// verifyContent holds the partitions against the image, whatever the table says.
func verifyContent(t *testing.T, path string, server *installtest.Server) {
	t.Helper()
	index, err := artifact.Decode(shared.index)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.Open(filepath.Join(shared.dir, "disk.raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	disk, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	seed, _ := index.Disk.Partition("CIDATA")
	for _, p := range index.Disk.Partitions {
		if p.Name != seed.Name {
			samePart(t, raw, disk, p)
		}
	}
	image := filepath.Join(t.TempDir(), "cidata")
	content := make([]byte, seed.Size)
	if _, err := disk.ReadAt(content, seed.Offset); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(image, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range server.Seed {
		got, err := exec.Command("mtype", "-i", image, "::"+name).Output()
		if err != nil || string(got) != want {
			t.Errorf("seed: %s is %q, want %q (%v)", name, got, want, err)
		}
	}
}

// samePart compares a partition of the disk with the image's.
func samePart(t *testing.T, raw, disk *os.File, p artifact.Partition) {
	t.Helper()
	a, b := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := p.Offset; at < p.Offset+p.Size; at += int64(len(a)) {
		if empty(t, raw, at, int64(len(a))) && empty(t, disk, at, int64(len(a))) {
			continue
		}
		if _, err := raw.ReadAt(a, at); err != nil {
			t.Fatal(err)
		}
		if _, err := disk.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs from the image in the megabyte at %d", p.Name, at)
			return
		}
	}
}

// empty reports whether a range of a sparse file is a hole, which is all zeros.
func empty(t *testing.T, f *os.File, at, n int64) bool {
	t.Helper()
	next, err := f.Seek(at, unix.SEEK_DATA)
	return errors.Is(err, unix.ENXIO) || err == nil && next >= at+n
}

// dead reports whether nothing on the disk looks like something to boot from.
func (r *rig) dead() bool {
	r.t.Helper()
	out, _ := exec.Command("blkid", "-p", r.path()).CombinedOutput()
	f, err := os.Open(r.path())
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 2<<20)
	if _, err := f.ReadAt(buf[:1<<20], 0); err != nil {
		r.t.Fatal(err)
	}
	if _, err := f.ReadAt(buf[1<<20:], diskSize-1<<20); err != nil {
		r.t.Fatal(err)
	}
	return len(bytes.TrimSpace(out)) == 0 && bytes.Count(buf, []byte{0}) == len(buf)
}

// notBootable checks that nothing looks like a disk to boot from.
func (r *rig) notBootable() {
	r.t.Helper()
	if !r.dead() {
		r.t.Errorf("the disk still looks bootable\n%s", r.screen.text())
	}
}

// untouched checks that no disk was even opened for writing.
func (r *rig) untouched(result install.Result) {
	r.t.Helper()
	if len(r.disks.opened) != 0 || result.Receipt.Written {
		r.t.Errorf("opened %v, the receipt says written: %v", r.disks.opened, result.Receipt.Written)
	}
}

// disks are files that stand for disks.
type disks struct {
	paths map[string]string
	wrap  func(install.Disk) install.Disk

	mu     sync.Mutex
	opened []string
}

func (d *disks) Open(m machine.Disk) (install.Disk, error) {
	d.mu.Lock()
	d.opened = append(d.opened, m.Name)
	d.mu.Unlock()
	dev, err := blockdev.Open(d.paths[m.Name])
	if err != nil {
		return nil, err
	}
	if d.wrap != nil {
		return d.wrap(dev), nil
	}
	return dev, nil
}

func (d *disks) Sanitize(context.Context, install.Disk, machine.Disk, machine.Sanitize) (string, error) {
	return "pretended", nil
}

type screen struct {
	mu    sync.Mutex
	lines []string
}

func (s *screen) Say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

func (s *screen) Status(string) {}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

type clock struct {
	mu  sync.Mutex
	now time.Time
	set int
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Set(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
	c.set++
	return nil
}

func theIndex(t *testing.T) artifact.Index {
	t.Helper()
	index, err := artifact.Decode(theBuild(t).index)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func seek(offset int64) string { return strconv.FormatInt(offset>>20, 10) }

func (s *screen) count(words string) int { return strings.Count(s.text(), words) }
