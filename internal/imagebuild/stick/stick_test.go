package stick_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/artifact/gpt"
	"github.com/slipway/slipway/internal/bootentry"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/imagebuild/stick"
	"github.com/slipway/slipway/internal/imagebuild/usb"
	"github.com/slipway/slipway/internal/imagebuild/usb/usbtest"
	"github.com/slipway/slipway/internal/imagebuild/verify/buildtest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install/bundle"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/progress"
)

// build is the build that all tests put on sticks.
var build string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "stick-*")
	if err == nil {
		build = filepath.Join(dir, "build")
		spec := buildtest.Default()
		spec.Environment, spec.Cluster = "lab", "harbor"
		err = buildtest.Build(context.Background(), build, spec)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func options(t *testing.T) stick.Options {
	t.Helper()
	p, err := profilefile.Load("../../../profiles/lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return stick.Options{
		Dir: build, Key: buildtest.PublicKey(), Cluster: p.Cluster, Temp: t.TempDir(), Now: time.Now(), Random: rand.Reader,
		Order: stick.Order{Valid: time.Hour, Overwrite: []string{"OLD-1"}, Sanitize: machine.SanitizeAuto, Data: cluster.PolicyWipe},
	}
}

func open(t *testing.T, o stick.Options) *stick.Stick {
	t.Helper()
	s, err := stick.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// save makes the file of a stick and mounts its bundle: as a directory.
func save(t *testing.T, s *stick.Stick, o stick.Options) (file, dir string) {
	t.Helper()
	file, dir = filepath.Join(o.Temp, "stick.img"), t.TempDir()
	if err := s.Save(t.Context(), file, progress.Nop{}); err != nil {
		t.Fatal(err)
	}
	run(t, "mcopy", "-s", "-i", at(t, s, file, disklayout.NameBundle), "::/build", "::/nodes", dir)
	return file, dir
}

func at(t *testing.T, s *stick.Stick, file, name string) string {
	t.Helper()
	p, ok := s.Disk().Partition(name)
	if !ok {
		t.Fatalf("no partition %s", name)
	}
	return file + "@@" + strconv.FormatInt(p.Offset, 10)
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestStick(t *testing.T) {
	o := options(t)
	s := open(t, o)
	file, dir := save(t, s, o)
	if out := run(t, "sgdisk", "-v", file); !strings.Contains(out, "No problems found") {
		t.Errorf("sgdisk -v: %s", out)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if bad := gpt.Check(f, s.Disk()); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
	fsck(t, s, file)
	boot := at(t, s, file, disklayout.NameStickESP)
	for path, want := range map[string]string{
		bootentry.LoaderPath:      buildtest.Default().ESP[bootentry.LoaderPath],
		bootentry.InstallerKernel: contents(t, artifact.RoleKernel),
		bootentry.InstallerInitrd: contents(t, artifact.RoleInstaller),
	} {
		if got := run(t, "mtype", "-i", boot, "::/"+path); got != want {
			t.Errorf("%s has %d bytes, want %d", path, len(got), len(want))
		}
	}
	if entry := run(t, "mtype", "-i", boot, "::/"+bootentry.InstallerPath); !strings.Contains(entry, "options    slipway.mode=install console=tty0 console=ttyS0,115200\n") {
		t.Errorf("entry:\n%s", entry)
	}
	for _, name := range []string{artifact.IndexName, artifact.SignatureName, "disk.raw.zst"} {
		a, errA := os.ReadFile(filepath.Join(dir, "build", name))
		b, errB := os.ReadFile(filepath.Join(build, name))
		if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(o.Temp, ".slipway-stick-*", "stick")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func fsck(t *testing.T, s *stick.Stick, file string) {
	t.Helper()
	for _, p := range s.Disk().Partitions {
		part := filepath.Join(t.TempDir(), "part")
		run(t, "dd", "if="+file, "of="+part, "bs=1M", "skip="+strconv.FormatInt(p.Offset>>20, 10), "count="+strconv.FormatInt(p.Size>>20, 10), "conv=sparse")
		run(t, "fsck.vfat", "-n", part)
	}
}

func contents(t *testing.T, role artifact.Role) string {
	t.Helper()
	x, err := buildtest.Index(build)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := x.One(role)
	data, err := os.ReadFile(filepath.Join(build, f.Name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The ticket is that of a machine that is armed over the network.
func TestTicket(t *testing.T) {
	o := options(t)
	_, dir := save(t, open(t, o), o)
	data, err := os.ReadFile(filepath.Join(dir, "nodes/n2/ticket.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got machine.Ticket
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	node := o.Cluster.Nodes[1]
	if got.Node != "n2" || got.Cluster != "harbor" || got.System != node.System || !got.Expires.Equal(o.Now.Add(time.Hour)) || got.Sanitize != machine.SanitizeAuto ||
		!slices.Equal(got.Overwrite, []string{"OLD-1"}) || len(got.Data) != 1 || got.Data[0].Policy != cluster.PolicyWipe || got.Data[0].Disk != node.Data[0].Selector {
		t.Errorf("%+v", got)
	}
	seed, err := os.ReadFile(filepath.Join(dir, "nodes/n2/seed/meta-data"))
	if err != nil || !strings.Contains(string(seed), "n2") {
		t.Errorf("seed: %q, %v", seed, err)
	}
}

// A machine that starts from the stick becomes the node that names it.
func TestNodes(t *testing.T) {
	o := options(t)
	reply := func(dir, mac string) string {
		t.Helper()
		source, err := bundle.Open(dir, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		r, _, err := source.Report(t.Context(), machine.Report{NICs: []machine.NIC{{MAC: mac}}})
		if err != nil {
			return err.Error()
		}
		return r.Message
	}
	_, all := save(t, open(t, o), o)
	o.Nodes, o.Temp = []string{"n2"}, t.TempDir()
	_, one := save(t, open(t, o), o)
	o.Nodes, o.Temp = []string{"n3", "n2"}, t.TempDir()
	two := open(t, o)
	_, both := save(t, two, o)
	for _, tt := range []struct{ dir, mac, says string }{
		{all, "52:54:00:12:34:57", "this stick has an install for node n2"},
		{all, "52:54:00:99:99:99", "the stick has nothing for this machine, only for n1, n2, n3"},
		{one, "52:54:00:12:34:57", "this stick has an install for node n2"},
		{one, "52:54:00:12:34:56", "this machine is node n1, and the stick installs only n2"},
		{one, "52:54:00:99:99:99", "this stick installs node n2; this machine has 52:54:00:99:99:99, which no node"},
		{both, "52:54:00:99:99:99", "the stick has nothing for this machine, only for n2, n3"},
		{both, "52:54:00:12:34:56", "this machine is node n1, and the stick installs only n2, n3"},
	} {
		if got := reply(tt.dir, tt.mac); !strings.Contains(got, tt.says) {
			t.Errorf("%s: %s", tt.mac, got)
		}
	}
	if len(two.Nodes) != 2 || two.Nodes[0].Node != "n2" || two.Nodes[0].ID == two.Nodes[1].ID {
		t.Errorf("%+v", two.Nodes)
	}
}

func TestRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*stick.Options)
		code  exit.Code
		says  string
	}{
		"design-only":     {func(o *stick.Options) { o.Cluster.Status = cluster.StatusDesignOnly }, exit.Refused, "the profile is design-only: no stick is made"},
		"other profile":   {func(o *stick.Options) { o.Cluster.Environment = "prod" }, exit.Usage, "the build is of lab (cluster harbor), the profile is prod (cluster harbor)"},
		"no such node":    {func(o *stick.Options) { o.Nodes = []string{"n1", "n9"} }, exit.Usage, `the profile has no node "n9"`},
		"not a build":     {func(o *stick.Options) { o.Dir = o.Temp }, exit.Usage, "opening build"},
		"somebody else's": {func(o *stick.Options) { o.Key = make([]byte, 32) }, exit.Failed, "index.json.sig"},
	} {
		o := options(t)
		tt.spoil(&o)
		if _, err := stick.Open(o); err == nil || exit.Of(err) != tt.code || !strings.Contains(err.Error(), tt.says) || diag.HintOf(err) == "" {
			t.Errorf("%s: exit %d, %v, hint %q", name, exit.Of(err), err, diag.HintOf(err))
		}
	}
}

// What the build has lost since it was signed is found before a stick is written.
func TestDamagedBuild(t *testing.T) {
	for name, says := range map[string]string{"disk.raw.zst": "checking image: chunk", "vmlinuz": "vmlinuz", "initrd-install.zst": "initrd.zst"} {
		o := options(t)
		o.Dir = filepath.Join(t.TempDir(), "build")
		run(t, "cp", "-a", "--sparse=always", build, o.Dir)
		if err := buildtest.Flip(o.Dir, name, 5); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(o.Temp, "stick.img")
		err := open(t, o).Save(t.Context(), file, progress.Nop{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: there is a stick", name)
		}
	}
}

// A stick that is written to a device is one for its size, and is read back.
func TestDevice(t *testing.T) {
	o := options(t)
	s := open(t, o)
	if err := s.Check(t.Context(), progress.Nop{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "device")
	const size = 1 << 30
	if err := os.WriteFile(path, bytes.Repeat([]byte("old"), 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	target, err := usbtest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := usb.Write(t.Context(), s, target, progress.Nop{}); err != nil {
		t.Fatal(err)
	}
	disk := s.Disk()
	disk.Size = size
	if bad := gpt.Check(target, disk); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
	fsck(t, s, path)
	if got := run(t, "mtype", "-i", at(t, s, path, disklayout.NameBundle), "::/nodes/n1/machine.json"); !strings.Contains(got, "52:54:00:12:34:56") {
		t.Errorf("machine.json: %s", got)
	}
}

// A run that was killed leaves a directory; the next run removes it, but not that
// of one that still works.
func TestLeftoversAreSwept(t *testing.T) {
	o := options(t)
	dead, alive := filepath.Join(o.Temp, ".slipway-stick-dead"), filepath.Join(o.Temp, ".slipway-stick-alive")
	for _, dir := range []string{dead, alive} {
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.Open(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := open(t, o).Check(t.Context(), progress.Nop{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("the dead one is still there")
	}
	if _, err := os.Stat(alive); err != nil {
		t.Error(err)
	}
}

func TestFileIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "stick.img")
	if err := stick.CheckFile(file, false); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stick.CheckFile(file, false); exit.Of(err) != exit.Refused || !strings.Contains(diag.HintOf(err), "--force") {
		t.Errorf("%v", err)
	}
	if err := stick.CheckFile(file, true); err != nil {
		t.Error(err)
	}
	for _, path := range []string{dir, "/dev/null"} {
		if err := stick.CheckFile(path, true); exit.Of(err) != exit.Refused {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Ctrl-C leaves nothing behind, and no half of a stick under its name.
func TestInterrupted(t *testing.T) {
	o := options(t)
	s, err := stick.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = s.Save(ctx, filepath.Join(o.Temp, "stick.img"), progress.Nop{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(o.Temp); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
