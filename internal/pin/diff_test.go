package pin_test

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/pin"
)

func TestDiffOfEqualLocksIsEmpty(t *testing.T) {
	if d := pin.Diff(sample(), sample()); len(d) != 0 {
		t.Errorf("got %v", d)
	}
}

func TestDiff(t *testing.T) {
	to := sample()
	rootfs := &to.Debian.Sets[2]
	rootfs.Packages[0].Version = "3.0.10" // 10 is more than 3, though less as a text
	rootfs.Packages[1].Version = "1.3.2-1"
	rootfs.Packages[2].Archive = pin.ArchiveDebian
	rootfs.Packages = append(rootfs.Packages, pkg("vim", "9.1"))
	to.Debian.Sets[1].Packages[0].Digest = digest.Of([]byte("other"))
	to.Debian.Sets[0].Packages = nil
	to.Artifacts[0].Digest = digest.Digest{}
	to.Artifacts[1].Digest = digest.Of([]byte("k3s"))
	var got []string
	for _, c := range pin.Diff(sample(), to) {
		got = append(got, c.Set+": "+c.String())
	}
	want := []string{
		"kernel: removed  linux-image-6.12.1-amd64 6.12.1-1",
		"netboot: rebuilt  ipxe 1.21.1+git1-1: the same version with another digest",
		"rootfs: raised   apt 3.0.3 -> 3.0.10",
		"rootfs: added    vim 9.1",
		"rootfs: lowered  zlib1g 1:1.3.1-1 -> 1.3.2-1", // the epoch went
		"rootfs: moved    zstd 1.5.7+dfsg-1+deb13u1",
		"artifacts: unpinned cilium-chart 1.20.2",
		"artifacts: pinned   k3s v1.34.4+k3s1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDiffFromNothing(t *testing.T) {
	if d := pin.Diff(nil, sample()); len(d) != 9 || d[0].How != pin.Added {
		t.Errorf("got %v", d)
	}
}
