package plan

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/digest"
)

func sample() Plan {
	d := digest.Of([]byte("x"))
	return Plan{
		Format: Format, Name: "slipway-lab", Environment: "lab", Cluster: "harbor", Substrate: "vm", Status: "active", Epoch: 1_700_000_000,
		Rootfs: Rootfs{Suite: "trixie", Packages: []Deb{{Name: "bash", Version: "5", Arch: "amd64", Size: 1 << 20, Digest: d}}, Drop: []string{"a"}, Overlay: d, Node: d, Level: 9},
		Kernel: Kernel{Package: Deb{Name: "linux", Digest: d}, Modules: []string{"ext4"}, CommandLine: []string{"panic=10"}},
		Payload: Payload{Inputs: []Input{{Name: "cilium-chart", Version: "1.20.2", Kind: "url", Size: 3, Digest: d}},
			Absent: []Absent{{Name: "k3s", Version: "v1", Why: "nobody has it"}}, Values: d},
		Disk:  Disk{ESPSize: 512 << 20, Seed: "n1"},
		Seeds: []Seed{{Node: "n1", Documents: []Document{{Name: "user-data", Size: 5, Digest: d}}}},
		IPXE:  Deb{Name: "ipxe", Version: "1"},
	}
}

// Each change must move exactly the keys of the parts it enters: a key that does
// not move reuses something stale, one that moves needlessly costs minutes.
func TestKeysFollowWhatTheyDependOn(t *testing.T) {
	other := digest.Of([]byte("other"))
	cases := map[string]struct {
		change func(*Plan)
		moved  string // rootfs, kernel, slot, initrd, payload
	}{
		"seed":          {func(p *Plan) { p.Seeds[0].Documents[0].Digest = other }, ""},
		"command line":  {func(p *Plan) { p.Kernel.CommandLine = append(p.Kernel.CommandLine, "quiet") }, ""},
		"slot size":     {func(p *Plan) { p.Disk.SlotSize = 1 << 30 }, ""},
		"node":          {func(p *Plan) { p.Rootfs.Node = other }, "slot initrd"},
		"overlay":       {func(p *Plan) { p.Rootfs.Overlay = other }, "slot"},
		"left out":      {func(p *Plan) { p.Rootfs.Drop = nil }, "slot"},
		"level":         {func(p *Plan) { p.Rootfs.Level = 1 }, "slot"},
		"package":       {func(p *Plan) { p.Rootfs.Packages[0].Digest = other }, "rootfs slot"},
		"kernel":        {func(p *Plan) { p.Kernel.Package.Digest = other }, "kernel slot initrd"},
		"initrd module": {func(p *Plan) { p.Kernel.Modules = nil }, "initrd"},
		"NIC driver":    {func(p *Plan) { p.Kernel.Install.Modules = []string{"igc"} }, ""},
		"chart":         {func(p *Plan) { p.Payload.Inputs[0].Digest = other }, "payload slot"},
		"values":        {func(p *Plan) { p.Payload.Values = other }, ""},
		"absent input":  {func(p *Plan) { p.Payload.Absent = nil }, ""},
		"epoch":         {func(p *Plan) { p.Epoch++ }, "rootfs slot"},
	}
	keys := func(p Plan) map[string]digest.Digest {
		return map[string]digest.Digest{"rootfs": p.RootfsKey(), "kernel": p.KernelKey(), "slot": p.SlotKey(), "initrd": p.InitrdKey(), "payload": p.PayloadKey()}
	}
	for name, c := range cases {
		before, after := sample(), sample()
		c.change(&after)
		if before.Digest() == after.Digest() {
			t.Errorf("%s: the plan's digest stays", name)
		}
		for part, key := range keys(after) {
			if moved := key != keys(before)[part]; moved != strings.Contains(c.moved, part) {
				t.Errorf("%s: key of %s moved: %v", name, part, moved)
			}
		}
	}
}

func TestEncodeIsReadBack(t *testing.T) {
	text, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	var got Plan
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, sample()) {
		t.Errorf("got %+v", got)
	}
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := sample().Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"plan " + sample().Digest().Short(), "cluster harbor", "panic=10", "content and a third", "user-data 5 B", "cilium-chart 1.20.2", "k3s v1: nobody has it"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
