package verify

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
)

func ctx() context.Context { return context.Background() }

// replace writes a file anew and signs it: as a builder with a bug would.
func replace(t *testing.T, dir string, role artifact.Role, node string, data []byte) {
	t.Helper()
	index(t, dir, func(x *artifact.Index) {
		for i, f := range x.Files {
			if f.Role == role && f.Node == node {
				x.Files[i].Size, x.Files[i].Digest = int64(len(data)), digest.Of(data)
				if err := os.WriteFile(filepath.Join(dir, f.Name), data, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
		t.Fatalf("no file of role %s", role)
	})
}

// named is replace for one file of several with its role.
func named(name, text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		index(t, dir, func(x *artifact.Index) {
			for i, f := range x.Files {
				if f.Name == name {
					x.Files[i].Size, x.Files[i].Digest = int64(len(text)), digest.Of([]byte(text))
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
			}
			t.Fatalf("no file %s", name)
		})
	}
}

// A signature proves who built, not that the build is right.
func TestSignedNonsenseIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"root hash": {func(t *testing.T, dir string) {
			index(t, dir, func(x *artifact.Index) { x.Slot.RootHash = strings.Repeat("0", 64) })
		}, "slot: verity tree does not lead to root hash 000000000000"},
		"partition": {func(t *testing.T, dir string) {
			index(t, dir, func(x *artifact.Index) { x.Disk.Partitions[3].Name = "SEED" })
		}, "disk.raw: primary GPT: partition 4 is"},
		"slot size": {func(t *testing.T, dir string) {
			index(t, dir, func(x *artifact.Index) { x.Slot.Size += 4096 })
		}, "index.json: slot of"},
		"slot digest": {func(t *testing.T, dir string) {
			index(t, dir, func(x *artifact.Index) {
				f := x.Files[len(x.Files)-2]
				if f.Role != artifact.RoleSlot {
					t.Fatalf("%s is not the slot", f.Name)
				}
				x.Slot.Digest = digest.Of(nil)
				x.Files[len(x.Files)-2].Digest = digest.Of(nil)
			})
		}, "partition 2 (slipway-a), byte 0: content has digest"},
		"plan": {func(t *testing.T, dir string) {
			replace(t, dir, artifact.RolePlan, "", []byte("{}"))
		}, "plan.json: is another plan"},
		"sbom": {func(t *testing.T, dir string) {
			replace(t, dir, artifact.RoleSBOM, "", []byte(`{"bomFormat":"CycloneDX"}`))
		}, "sbom.cdx.json: serial number"},
		"provenance": {func(t *testing.T, dir string) {
			replace(t, dir, artifact.RoleInitrd, "", []byte(`another`))
		}, "provenance.json: subject initrd.zst has another sha256 digest"},
		"seed": {func(t *testing.T, dir string) {
			replace(t, dir, artifact.RoleSeed, "n1", []byte("local-hostname: x\n"))
		}, "seeds/n1/meta-data: has no instance-id"},
		"chart":            {named("payload/cilium.tgz", "\x1f\x8bx"), "payload/cilium.tgz: is no chart"},
		"manifest":         {named("payload/flux.yaml", "apiVersion: v1\n---\na: b\n"), "payload/flux.yaml: document 1 is no object"},
		"no manifest":      {named("payload/flux.yaml", "# nothing\n"), "payload/flux.yaml: holds no object"},
		"images":           {named("payload/images.txt", "busybox\n"), "payload/images.txt: busybox is not the full name"},
		"images, unsorted": {named("payload/images.txt", "quay.io/x/z:1\nquay.io/x/y:1\n"), "payload/images.txt: is not sorted"},
		"qcow2 of another disk": {func(t *testing.T, dir string) {
			sh(t, "qemu-img create -q -f qcow2 "+dir+"/disk.qcow2 428867584")
			data, err := os.ReadFile(dir + "/disk.qcow2")
			if err != nil {
				t.Fatal(err)
			}
			replace(t, dir, artifact.RoleDiskQcow2, "", data)
		}, "disk.qcow2: content is not that of disk.raw"},
		"no qcow2": {func(t *testing.T, dir string) {
			replace(t, dir, artifact.RoleDiskQcow2, "", []byte("QFI\xfb"))
		}, "disk.qcow2: qemu-img check:"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t)
			c.spoil(t, dir)
			if got := text(verify(t, dir)); !strings.Contains(got, c.want) {
				t.Errorf("found\n%swant\n%s", got, c.want)
			}
		})
	}
}

func sh(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func TestCancelledVerifyIsNoVerdict(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Verify(cancelled, Options{Dir: original}); err == nil {
		t.Error("no error")
	}
	if _, err := Verify(t.Context(), Options{Dir: filepath.Join(original, "none")}); err == nil {
		t.Error("a missing directory is no error")
	}
}
