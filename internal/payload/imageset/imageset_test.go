package imageset_test

import (
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/payload/imageset"
)

func TestOf(t *testing.T) {
	var objects []map[string]any
	if err := yaml.Unmarshal([]byte(`
- kind: Deployment
  spec:
    template:
      spec:
        initContainers: [{name: a, image: busybox}]
        containers:
          - name: manager
            image: longhornio/manager:v1
            command: [manager, deploy, --engine-image, "longhornio/engine:v1", --ui-image=quay.io/x/ui:v2, --manager-url, "http://x:1"]
            args: [--share-image]
            env: [{name: CSI_ATTACHER_IMAGE, value: "longhornio/attacher:v4"}, {name: POD_IMAGE, valueFrom: {}}, {name: OTHER, value: "x/y:z"}]
- kind: Pod
  spec: {containers: [{image: "quay.io/x/ui:v2"}, {image: "quay.io/x/y:v1@sha256:0b"}]}
- kind: CronJob
  spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: "localhost:5000/job"}]}}}}}
- kind: ConfigMap
  data: {image: "not/an:image"}
`), &objects); err != nil {
		t.Fatal(err)
	}
	want := []string{"docker.io/library/busybox:latest", "docker.io/longhornio/attacher:v4", "docker.io/longhornio/engine:v1", "docker.io/longhornio/manager:v1",
		"localhost:5000/job:latest", "quay.io/x/ui:v2", "quay.io/x/y@sha256:0b"}
	if got := imageset.Of(objects); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestFull(t *testing.T) {
	for ref, want := range map[string]string{
		"busybox": "docker.io/library/busybox:latest", "rancher/mirrored-pause:3.6": "docker.io/rancher/mirrored-pause:3.6",
		"index.docker.io/x/y": "docker.io/x/y:latest", "quay.io/a/b/c:1": "quay.io/a/b/c:1", "reg:5000/x": "reg:5000/x:latest",
		"localhost/x:1": "localhost/x:1", "docker.io/x:1": "docker.io/library/x:1", "ghcr.io/x/y:v1@sha256:ab": "ghcr.io/x/y@sha256:ab",
	} {
		if got := imageset.Full(ref); got != want || imageset.Full(got) != got {
			t.Errorf("%s: %s, again %s", ref, got, imageset.Full(got))
		}
	}
}

func TestMissing(t *testing.T) {
	got := imageset.Missing([]string{"c", "a", "b"}, []string{"a"}, []string{"x"})
	if !slices.Equal(got, []string{"c", "b"}) {
		t.Errorf("got %q", got)
	}
}
