package pin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/pin"
)

func TestWant(t *testing.T) {
	w := pin.Want(profile(), []string{"systemd-sysv", "curl"}, "linux-image-amd64")
	rootfs := w.Sets[2]
	if want := []string{"apt", "curl", "systemd-sysv", "vim-tiny"}; !rootfs.Closure || !slices.Equal(rootfs.Packages, want) {
		t.Errorf("rootfs is %+v, want %v with its closure", rootfs, want)
	}
	if k := w.Sets[0]; k.Closure || !slices.Equal(k.Packages, []string{"linux-image-amd64"}) {
		t.Errorf("kernel is %+v", k)
	}
}

func sources(list []pin.Artifact) (out []string) {
	for _, a := range list {
		out = append(out, strings.TrimSpace(a.Name+" "+a.Version+" "+string(a.Kind)+" "+a.Source+" "+a.Subdir))
	}
	return out
}

func TestArtifactsFromUpstream(t *testing.T) {
	got := sources(pin.WantArtifacts(profile()))
	want := []string{
		"cilium-chart 1.20.2 url https://helm.cilium.io/cilium-1.20.2.tgz",
		"flux-components 2.9.5 url https://github.com/fluxcd/flux2/releases/download/v2.9.5/install.yaml",
		"gateway-api-crds 1.5.1 url https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.5.1/standard-install.yaml",
		"k3s v1.34.4+k3s1 url https://github.com/k3s-io/k3s/releases/download/v1.34.4%2Bk3s1/k3s",
		"k3s-images v1.34.4+k3s1 url https://github.com/k3s-io/k3s/releases/download/v1.34.4%2Bk3s1/k3s-airgap-images-amd64.tar.zst",
		"longhorn-chart 1.9.0 url https://github.com/longhorn/charts/releases/download/longhorn-1.9.0/longhorn-1.9.0.tgz",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestArtifactsFromModulesAndFiles(t *testing.T) {
	c := profile()
	c.Sources = cluster.Sources{From: cluster.OriginGoModule, Files: map[string]string{"k3s": "../build/k3s"}}
	list := pin.WantArtifacts(c)
	got := sources(list)
	want := []string{
		"cilium-chart 1.20.2 gomodule github.com/cilium/cilium@v1.20.2 install/kubernetes/cilium",
		"flux-components 2.9.5 gomodule github.com/fluxcd/flux2/v2@v2.9.5 manifests",
		"gateway-api-crds 1.5.1 gomodule sigs.k8s.io/gateway-api@v1.5.1 config/crd/standard",
		"k3s v1.34.4+k3s1 file ../build/k3s",
		"k3s-images v1.34.4+k3s1 url https://github.com/k3s-io/k3s/releases/download/v1.34.4%2Bk3s1/k3s-airgap-images-amd64.tar.zst",
		"longhorn-crds 1.9.0 gomodule github.com/longhorn/longhorn-manager@v1.9.0 k8s/crds.yaml",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, a := range list {
		if (a.Unpinned != "") != (a.Name == "k3s-images") {
			t.Errorf("%s: unpinned is %q", a.Name, a.Unpinned)
		}
	}
}

func TestArtifactsThatAreOff(t *testing.T) {
	c := profile()
	c.Longhorn.Enabled, c.Cilium.GatewayAPI = false, false
	for _, a := range pin.WantArtifacts(c) {
		if strings.HasPrefix(a.Name, "longhorn") || strings.HasPrefix(a.Name, "gateway") {
			t.Errorf("%s is wanted though it is off", a.Name)
		}
	}
}

func TestCheckFiles(t *testing.T) {
	c := profile()
	c.Sources.Files = map[string]string{"k3s": "a"}
	if err := pin.CheckFiles(c); err != nil {
		t.Error(err)
	}
	c.Sources.Files["k3z"] = "b"
	if err := pin.CheckFiles(c); err == nil || !strings.Contains(err.Error(), "k3z") || !strings.Contains(err.Error(), "k3s-images") {
		t.Errorf("got %v", err)
	}
}
