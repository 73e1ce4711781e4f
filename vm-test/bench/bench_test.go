package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/vm-test/qemu"
)

const (
	diskSize  = 8 << 30 // bytes
	bootLimit = 10 * time.Minute
)

var (
	benchRun    = flag.Bool("bench-run", false, "measure; needs root, the archive and about 20 minutes")
	benchRounds = flag.Int("bench-rounds", 3, "how often each image is booted anew")
)

// TestBench measures and prints. It fails when ours boots too slowly.
func TestBench(t *testing.T) {
	if !*benchRun {
		t.Log("not measuring: make bench does (-bench-run)")
		return
	}
	if os.Geteuid() != 0 {
		t.Fatal("the benchmark needs root: mkosi runs in a system of its own\nhint: sudo make bench")
	}
	y := openYard(t)
	y.fillArchives(t)
	version := y.prepareMkosi(t)
	o, our := y.buildOurs(t)
	r := Report{Machine: machine(), Builds: []Build{our, y.buildMkosi(t, version)}}
	plain := y.buildPlain(t, o)
	accel, why, err := qemu.ChooseAccel(t.Context(), o.file(t, artifact.RoleKernel), y.dir)
	must(t, err)
	r.Accel = fmt.Sprintf("%s (%s)", accel, why)
	r.Boots = y.compareBoots(t, accel, o.file(t, artifact.RoleDiskRaw), plain)
	must(t, r.write(t, "../../out/bench.json"))
	if r.FirstRatio() > MaxBootRatio {
		t.Errorf("our first boot takes %.2f times as long as the plain image's, at most %.2f is allowed", r.FirstRatio(), MaxBootRatio)
	}
}

// compareBoots boots the two images alternately, each round from a fresh disk
// and then once more.
func (y *yard) compareBoots(t *testing.T, accel qemu.Accel, our, plain string) []Boots {
	t.Helper()
	result := []Boots{{Image: "slipway"}, {Image: "plain Debian " + y.cluster.Debian.Suite + ", ext4"}}
	for round := range *benchRounds {
		for i, image := range []string{our, plain} {
			name := fmt.Sprintf("boot%d-%d", i, round)
			disk, err := qemu.Overlay(t.Context(), image, "raw", y.path(name+".qcow2"), diskSize)
			must(t, err)
			config := qemu.Config{Name: name, Dir: y.dir, Accel: accel, Disks: []qemu.Disk{disk}, NICs: []qemu.NIC{y.nic()}}
			result[i].First = append(result[i].First, boot(t, config))
			result[i].Later = append(result[i].Later, boot(t, config))
			t.Logf("round %d, %s: %.1f s, then %.1f s", round+1, result[i].Image, result[i].First[round], result[i].Later[round])
		}
	}
	return result
}

func (y *yard) nic() qemu.NIC {
	i := y.cluster.Nodes[0].Interfaces[0]
	return qemu.NIC{MAC: string(i.MAC), SSH: i.Addresses[0].Addr()}
}

// boot switches a machine on, waits for cloud-init's last words on the console,
// and switches it off in order. It returns the seconds that the words took.
func boot(t *testing.T, c qemu.Config) float64 {
	t.Helper()
	v, err := qemu.Start(t.Context(), c)
	must(t, err)
	defer v.Close()
	_, err = v.Serial[0].Expect(t.Context(), `Cloud-init v\.[^\n]* finished at`, bootLimit)
	took := time.Since(v.Started).Seconds()
	must(t, err)
	must(t, v.PressPower(t.Context()))
	must(t, v.Wait(t.Context(), bootLimit))
	return took
}

// write prints the report and keeps it as JSON.
func (r Report) write(t *testing.T, path string) error {
	t.Helper()
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		return err
	}
	t.Logf("\n%s", &text)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.JSON(f)
}

// machine describes the host: what its processors call themselves, and how many.
func machine() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	_, rest, found := strings.Cut(string(text), "model name")
	if err != nil || !found {
		return fmt.Sprintf("%d CPUs", runtime.NumCPU())
	}
	line, _, _ := strings.Cut(rest, "\n")
	return fmt.Sprintf("%s, %d CPUs", strings.Trim(line, "\t :"), runtime.NumCPU())
}
