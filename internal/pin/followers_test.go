package pin_test

import (
	"archive/tar"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/pin"
)

func manifests(t *testing.T, files map[string]string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// The controllers' versions are those that the release of Flux was made of.
func TestFluxFollowers(t *testing.T) {
	files := map[string]string{"manifests/install/kustomization.yaml": "resources:\n  - ../bases/source-controller\n"}
	versions := map[string]string{"source-controller": "1.9.5", "kustomize-controller": "1.9.5", "helm-controller": "1.6.4",
		"notification-controller": "1.9.4", "image-reflector-controller": "1.2.5"}
	for name, v := range versions {
		base := "https://github.com/fluxcd/" + name + "/releases/download/v" + v + "/" + name
		files["manifests/bases/"+name+"/kustomization.yaml"] = "resources:\n- " + base + ".crds.yaml\n- " + base + ".deployment.yaml\n- account.yaml\n"
	}
	list, err := pin.FluxFollowers(manifests(t, files))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"flux-helm-controller 1.6.4 gomodule github.com/fluxcd/helm-controller@v1.6.4 config",
		"flux-kustomize-controller 1.9.5 gomodule github.com/fluxcd/kustomize-controller@v1.9.5 config",
		"flux-notification-controller 1.9.4 gomodule github.com/fluxcd/notification-controller@v1.9.4 config",
		"flux-source-controller 1.9.5 gomodule github.com/fluxcd/source-controller@v1.9.5 config",
	}
	if got := sources(list); !slices.Equal(got, want) || list[0].For != pin.ArtifactFlux {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
	delete(files, "manifests/bases/helm-controller/kustomization.yaml")
	if _, err := pin.FluxFollowers(manifests(t, files)); err == nil || !strings.Contains(err.Error(), "helm-controller") {
		t.Errorf("without a controller: %v", err)
	}
	if _, err := pin.FluxFollowers(strings.NewReader(strings.Repeat("x", 600))); err == nil {
		t.Error("no tar, no error")
	}
}
