package pin_test

import (
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/pin"
)

func pkg(name, version string) pin.Package {
	return pin.Package{Name: name, Version: version, Arch: "amd64", Archive: pin.ArchiveDebian,
		Path: "pool/main/" + name + "_" + version + "_amd64.deb", Size: 4096, Digest: digest.Of([]byte(name + version))}
}

// sample is a lock with one of everything.
func sample() *pin.Lock {
	security := pkg("zstd", "1.5.7+dfsg-1+deb13u1")
	security.Archive = pin.ArchiveSecurity
	return &pin.Lock{
		Debian: pin.Debian{
			Suite: "trixie", Arch: "amd64", Components: []string{"main", "non-free-firmware"},
			Releases: []pin.Release{
				{Archive: pin.ArchiveDebian, Suite: "trixie", Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Digest: digest.Of([]byte("a"))},
				{Archive: pin.ArchiveSecurity, Suite: "trixie-security", Date: time.Date(2026, 2, 2, 3, 4, 5, 0, time.UTC), Digest: digest.Of([]byte("b"))},
			},
			Sets: []pin.Set{
				{Name: pin.SetKernel, Wanted: []string{"linux-image-amd64"}, Packages: []pin.Package{pkg("linux-image-6.12.1-amd64", "6.12.1-1")}},
				{Name: pin.SetNetboot, Wanted: []string{"ipxe"}, Packages: []pin.Package{pkg("ipxe", "1.21.1+git1-1")}},
				{Name: pin.SetRootfs, Wanted: []string{"apt", "zstd"}, Packages: []pin.Package{pkg("apt", "3.0.3"), pkg("zlib1g", "1:1.3.1-1"), security}},
			},
		},
		Artifacts: []pin.Artifact{
			{Name: "cilium-chart", Version: "1.20.2", Kind: pin.KindGoModule, Source: "github.com/cilium/cilium@v1.20.2", Subdir: "install/kubernetes/cilium",
				H1: "h1:dqiEGIcXc+gqCLYG/l7VCFJ8GHyb4HUrwbZOpkX5dL8=", Size: 12, Digest: digest.Of([]byte("chart"))},
			{Name: "k3s", Version: "v1.34.4+k3s1", Kind: pin.KindURL, Source: "https://example.org/k3s", Unpinned: "the source could not be reached"},
			{Name: "quay.io/x/y:v1", Version: "v1", For: "cilium-chart", Kind: pin.KindImage, Source: "quay.io/x/y:v1", Size: 9, Digest: digest.Of([]byte("manifest"))},
			{Name: "tool", Version: "1", Kind: pin.KindFile, Source: "../build/tool", Size: 7, Digest: digest.Of([]byte("tool"))},
		},
	}
}

// wanted is what sample was made for.
func wanted() pin.Wanted {
	return pin.Wanted{
		Suite: "trixie", Components: []string{"main", "non-free-firmware"},
		Sets: []pin.WantedSet{
			{Name: pin.SetKernel, Packages: []string{"linux-image-amd64"}},
			{Name: pin.SetNetboot, Packages: []string{"ipxe"}},
			{Name: pin.SetRootfs, Packages: []string{"apt", "zstd"}, Closure: true},
		},
		Artifacts: []pin.Artifact{
			{Name: "cilium-chart", Version: "1.20.2", Kind: pin.KindGoModule, Source: "github.com/cilium/cilium@v1.20.2", Subdir: "install/kubernetes/cilium"},
			{Name: "k3s", Version: "v1.34.4+k3s1", Kind: pin.KindURL, Source: "https://example.org/k3s"},
			{Name: "tool", Version: "1", Kind: pin.KindFile, Source: "../build/tool"},
		},
	}
}

func profile() *cluster.Cluster {
	return &cluster.Cluster{
		Debian:   cluster.Debian{Suite: "trixie", Components: []string{"main"}},
		System:   cluster.System{Packages: []string{"vim-tiny", "curl"}},
		K3s:      cluster.K3s{Version: "v1.34.4+k3s1"},
		Cilium:   cluster.Cilium{Version: "1.20.2", GatewayAPI: true, GatewayAPIVersion: "1.5.1"},
		Longhorn: cluster.Longhorn{Enabled: true, Version: "1.9.0"},
		Flux:     cluster.Flux{Version: "2.9.5"},
		Sources:  cluster.Sources{From: cluster.OriginUpstream},
	}
}
