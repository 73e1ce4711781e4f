package bench

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/hosttool"
)

// enter is a shell script that makes the directory $0 the root of a private
// mount name space, with $1 at /peer, and runs the rest there. Not chroot:
// mkosi makes user name spaces, which the kernel refuses in one.
const enter = `mount --make-rprivate /
mount --bind "$0" "$0"
cd "$0"
peer=$1
shift
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs tmp
mkdir -p peer mnt/old
mount --bind "$peer" peer
pivot_root . mnt/old
umount -l /mnt/old
cd /peer
exec env -i PATH=/usr/sbin:/usr/bin HOME=/root "$@"`

const mkosiConf = `[Distribution]
Distribution=debian
Release=%s
LocalMirror=file:///peer/repo

[Output]
Format=disk
ImageId=plain
OutputDirectory=out
CompressOutput=no

[Build]
PackageCacheDirectory=cache
BuildSources=

[Content]
Bootable=yes
Bootloader=systemd-boot
BiosBootloader=none
Packages=%s
KernelCommandLine=%s
WithDocs=no
`

// prepareMkosi makes the system that mkosi runs in, and its configuration.
func (y *yard) prepareMkosi(t *testing.T) (version string) {
	t.Helper()
	args := []string{"--mode=root", "--variant=apt", "--quiet", "--include=" + strings.Join(toolPackages(), ","), y.cluster.Debian.Suite, y.path("tools")}
	must(t, run(t.Context(), "mmdebstrap", append(args, y.sources[1:]...)...))
	for _, dir := range []string{"out", "cache"} {
		must(t, os.MkdirAll(y.path("peer", dir), 0o755))
	}
	conf := fmt.Sprintf(mkosiConf, y.cluster.Debian.Suite, strings.Join(y.packages, ","), strings.Join(y.consoles(), " "))
	must(t, os.WriteFile(y.path("peer", "mkosi.conf"), []byte(conf), 0o644))
	return strings.TrimSpace(y.mkosi(t, "--version"))
}

func (y *yard) mkosi(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	line := append([]string{"--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", enter, y.path("tools"), y.path("peer"), "mkosi"}, args...)
	must(t, hosttool.Run(t.Context(), hosttool.Cmd{Name: "unshare", Args: line, Stdout: &out}))
	return out.String()
}

// buildMkosi builds the image of the same packages with mkosi.
func (y *yard) buildMkosi(t *testing.T, version string) Build {
	t.Helper()
	start := time.Now()
	y.mkosi(t, "--force", "build")
	b := Build{Builder: version, Seconds: time.Since(start).Seconds()}
	b.measure(t, y.path("peer", "out", "plain.raw"), "")
	return b
}

// consoles are the words of our command line that decide how much is printed.
func (y *yard) consoles() []string {
	var words []string
	for _, c := range y.cluster.System.ExtraConsole {
		words = append(words, "console="+c)
	}
	return words
}
