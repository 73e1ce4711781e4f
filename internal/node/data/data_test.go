package data

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	told "github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/machine"
)

// fakeNode keeps its disks in memory; what is real is in loop_test.go.
type fakeNode struct {
	World
	disks   []machine.Disk
	said    []string
	cut     string // the call in which the power fails
	started []string
}

var errCut = errors.New("the power failed")

func newNode(t *testing.T, disks ...machine.Disk) *fakeNode {
	n := &fakeNode{disks: disks}
	n.World = World{
		Root:  t.TempDir(),
		Disks: func() []machine.Disk { return slices.Clone(n.disks) },
		Partition: func(d machine.Disk) (string, error) {
			if n.cut == "table" {
				n.set(d.Name, machine.Signature{Type: "dos"}) // half a table
				return "", errCut
			}
			n.set(d.Name, machine.Signature{Type: "gpt"}, machine.Signature{Partition: 1, Type: "partition", Label: "slipway-data"})
			return d.Name + "1", nil
		},
		Format: func(_ context.Context, device, uuid string) error {
			if n.cut == "format" {
				return errCut
			}
			name := strings.TrimSuffix(device, "1")
			n.set(name, machine.Signature{Type: "gpt"}, machine.Signature{Partition: 1, Type: "partition", Label: "slipway-data"},
				machine.Signature{Partition: 1, Type: "ext4", Label: "slipway-data", UUID: uuid})
			return nil
		},
		Systemctl: func(_ context.Context, args ...string) error {
			if n.cut == "mount" {
				return errCut
			}
			if args[0] == "start" {
				n.started = append(n.started, args[1])
				n.mountAll(t)
			}
			return nil
		},
		Say: func(line string) { n.said = append(n.said, line) },
	}
	return n
}

func (n *fakeNode) set(name string, content ...machine.Signature) {
	for i := range n.disks {
		if n.disks[i].Name == name {
			n.disks[i].Content = content
		}
	}
}

// mountAll lets the kernel show all kept mounts.
func (n *fakeNode) mountAll(t *testing.T) {
	var text strings.Builder
	for _, m := range n.kept().Mounts {
		text.WriteString("36 25 254:17 / " + m.Path + " rw - ext4 /dev/x rw\n")
	}
	n.file(t, "/proc/self/mountinfo", text.String())
}

func (n *fakeNode) file(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(n.Root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func vd(name, serial string, content ...machine.Signature) machine.Disk {
	return machine.Disk{Name: name, Serial: serial, Transport: "virtio", Size: 10 << 30, Sector: 512, Content: content}
}

func ours(uuid string) []machine.Signature {
	return []machine.Signature{{Type: "gpt"}, {Partition: 1, Type: "partition", Label: "slipway-data"}, {Partition: 1, Type: "ext4", Label: "slipway-data", UUID: uuid}}
}

func wanted(serials ...string) told.Wanted {
	w := told.Wanted{Format: told.DataFormat}
	for _, s := range serials {
		w.Disks = append(w.Disks, told.WantedDisk{Name: strings.ToLower(s), Disk: cluster.Selector{Serial: s}, Path: "/var/lib/longhorn/" + strings.ToLower(s)})
	}
	return w
}

func TestMake(t *testing.T) {
	n := newNode(t, vd("vda", "SYS", machine.Signature{Type: "gpt"}), vd("vdb", "A7"), vd("vdc", "B7", ours("11111111-0000-4000-8000-000000000000")...))
	before := n.disks[2].Content
	got, err := n.Make(t.Context(), wanted("A7", "B7"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Mounts) != 2 || !got.Mounts[0].Made || got.Mounts[1].Made || got.Mounts[1].UUID != "11111111-0000-4000-8000-000000000000" || !got.Mounts[1].Mounted {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(n.started, []string{"var-lib-longhorn-a7.mount", "var-lib-longhorn-b7.mount"}) {
		t.Errorf("started %q", n.started)
	}
	if !slices.Equal(n.disks[2].Content, before) {
		t.Error("a disk with data was written")
	}
	again, err := n.Make(t.Context(), wanted("A7", "B7"))
	if err != nil || again.Mounts[0] != got.Mounts[0] || len(n.said) != 1 {
		t.Errorf("the second time: %+v, %v, said %q", again, err, n.said)
	}
}

// The power may fail in every call. The next run goes on, and what is complete is
// not made a second time.
func TestPowerCut(t *testing.T) {
	for _, cut := range []string{"table", "format", "mount"} {
		n := newNode(t, vd("vdb", "A7"))
		n.cut = cut
		if _, err := n.Make(t.Context(), wanted("A7")); !errors.Is(err, errCut) {
			t.Fatalf("%s: %v", cut, err)
		}
		made := n.kept()
		if blank := len(n.Settled(n.disks)[0].Content) == 0; blank != (cut != "mount") {
			t.Errorf("%s: the disk counts as blank: %v", cut, blank)
		}
		n.cut = ""
		got, err := n.Make(t.Context(), wanted("A7"))
		if err != nil || !got.Mounts[0].Made || !got.Mounts[0].Mounted {
			t.Errorf("%s: %+v, %v", cut, got, err)
		}
		if cut == "mount" && got.Mounts[0].UUID != made.Mounts[0].UUID {
			t.Error("a complete file system was made again")
		}
		if len(n.begun()) != 0 {
			t.Errorf("%s: the note stays: %q", cut, n.begun())
		}
	}
}

// A disk that somebody else has half made is no blank one.
func TestForeignIsNeverBegun(t *testing.T) {
	n := newNode(t, vd("vdb", "A7", machine.Signature{Type: "dos"}), vd("vdc", "B7"))
	_, err := n.Make(t.Context(), wanted("A7", "B7"))
	if exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "not Slipway's: dos") || !strings.Contains(diag.HintOf(err), "wipefs") {
		t.Errorf("%v, hint %q", err, diag.HintOf(err))
	}
	if len(n.disks[1].Content) != 0 || len(n.begun()) != 0 {
		t.Error("another disk was written before all were looked at")
	}
}

func TestRefusals(t *testing.T) {
	uuid := "11111111-0000-4000-8000-000000000000"
	for _, c := range []struct {
		name, want string
		disks      []machine.Disk
		wanted     told.Wanted
		files      map[string]string
	}{
		{"no such disk", "there is no such disk", nil, wanted("A7"), nil},
		{"a partition without a file system", "without a file system that this node knows", []machine.Disk{vd("vdb", "A7", ours("")[:2]...)}, wanted("A7"), nil},
		{"copies", "one is a copy of the other", []machine.Disk{vd("vdb", "A7", ours(uuid)...), vd("vdc", "B7", ours(strings.ToUpper(uuid))...)}, wanted("A7", "B7"), nil},
		{"files at the place", "holds files already (volume-1)", []machine.Disk{vd("vdb", "A7")}, wanted("A7"), map[string]string{"/var/lib/longhorn/a7/volume-1": "x"}},
		{"another release", "slipway-data/9", []machine.Disk{vd("vdb", "A7")}, told.Wanted{Format: "slipway-data/9"}, nil},
		{"a place in the system", "cannot be mounted at \"/etc/x\"", nil, told.Wanted{Format: told.DataFormat, Disks: []told.WantedDisk{{Name: "a", Disk: cluster.Selector{Serial: "A7"}, Path: "/etc/x"}}}, nil},
		{"no serial number", "neither serial number nor WWN", []machine.Disk{{Name: "vdb", Model: "M", Size: 10 << 30}}, told.Wanted{Format: told.DataFormat, Disks: []told.WantedDisk{{Name: "a", Disk: cluster.Selector{Model: "M"}, Path: "/var/a"}}}, nil},
	} {
		n := newNode(t, c.disks...)
		for name, text := range c.files {
			n.file(t, name, text)
		}
		_, err := n.Make(t.Context(), c.wanted)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if len(n.said) > 0 || len(n.kept().Mounts) > 0 {
			t.Errorf("%s: something was done: %q", c.name, n.said)
		}
	}
}

// systemd-analyze is the foreign reader of the units where it is there.
func TestGenerate(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	if err := Generate(n.Root, dir); err != nil {
		t.Errorf("no data disks: %v", err)
	}
	n.file(t, told.DataPath, `{"format":"slipway-data/1","mounts":[{"name":"data","serial":"S 1","uuid":"aa-bb","path":"/var/lib/longhorn/my-data"}]}`)
	if err := Generate(n.Root, dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		`var-lib-longhorn-my\x2ddata.mount`:        "Requires=systemd-fsck@dev-disk-by\\x2duuid-aa\\x2dbb.service\nAfter=systemd-fsck@dev-disk-by\\x2duuid-aa\\x2dbb.service\n\n[Mount]\nWhat=/dev/disk/by-uuid/aa-bb\nWhere=/var/lib/longhorn/my-data\n",
		"k3s.service.d/50-slipway-data.conf":       "[Unit]\nRequiresMountsFor=/var/lib/longhorn/my-data\n",
		"k3s-agent.service.d/50-slipway-data.conf": "RequiresMountsFor=/var/lib/longhorn/my-data\n",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	n.file(t, told.DataPath, "{")
	if err := Generate(n.Root, dir); err == nil {
		t.Error("a damaged file")
	}
}

func TestTwoAtOnce(t *testing.T) {
	n := newNode(t, vd("vdb", "A7"))
	unlock, err := n.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Make(t.Context(), wanted("A7")); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("%v", err)
	}
	unlock()
	if _, err := n.Make(t.Context(), wanted("A7")); err != nil {
		t.Error(err)
	}
}

func TestUUIDs(t *testing.T) {
	a, b := newUUID(), newUUID()
	if a == b || len(a) != 36 || a[14] != '4' {
		t.Errorf("%s, %s", a, b)
	}
}
