package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cas"
)

// ours is our build of the lab image.
type ours struct {
	dir   string
	index artifact.Index
}

// buildOurs builds with all packages at hand and nothing built.
func (y *yard) buildOurs(t *testing.T) (ours, Build) {
	t.Helper()
	o := ours{dir: y.path("ours", "lab")}
	shared, err := cas.DefaultDir(os.Getenv)
	must(t, err)
	must(t, os.MkdirAll(y.path("cache"), 0o755))
	must(t, os.Symlink(filepath.Join(shared, "sha256"), y.path("cache", "sha256")))
	program, err := filepath.Abs("../../bin/imagebuild")
	must(t, err)
	start := time.Now()
	cmd := exec.CommandContext(t.Context(), program, "build", "-p", "../../profiles/lab.yaml", "--node", "n1", "-O", o.dir, "--cache", y.path("cache"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("imagebuild: %v\n%s", err, out)
	}
	b := Build{Builder: "imagebuild", Seconds: time.Since(start).Seconds()}
	text, err := os.ReadFile(filepath.Join(o.dir, artifact.IndexName))
	must(t, err)
	o.index, err = artifact.Decode(text)
	must(t, err)
	b.measure(t, o.file(t, artifact.RoleDiskRaw), o.file(t, artifact.RoleDiskZstd))
	return o, b
}

func (o ours) file(t *testing.T, role artifact.Role) string {
	t.Helper()
	for _, f := range o.index.Files {
		if f.Role == role {
			return filepath.Join(o.dir, f.Name)
		}
	}
	t.Fatalf("the build has no file of role %s", role)
	return ""
}

// measure takes the sizes of an image. A missing compressed form is made, with
// zstd as it comes.
func (b *Build) measure(t *testing.T, raw, packed string) {
	t.Helper()
	st, err := os.Stat(raw)
	must(t, err)
	b.Disk = st.Sys().(*syscall.Stat_t).Blocks * 512
	if packed == "" {
		packed = raw + ".zst"
		must(t, run(t.Context(), "zstd", "-q", "-T0", "-o", packed, raw))
	}
	st, err = os.Stat(packed)
	must(t, err)
	b.Packed = st.Size()
}
