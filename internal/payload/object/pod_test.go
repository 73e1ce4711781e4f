package object_test

import (
	"testing"

	"github.com/slipway/slipway/internal/payload/object"
)

func TestPodTrouble(t *testing.T) {
	status := func(key string, value any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{"nodeName": "n1"}, "status": map[string]any{key: value}}
	}
	container := func(state map[string]any, ready bool) []any {
		return []any{map[string]any{"name": "c", "state": state, "ready": ready}}
	}
	for want, pod := range map[string]map[string]any{
		"": status("conditions", []any{map[string]any{"type": "Ready", "status": "True"}}),
		"pod p on n1: container c waits: no such image":           status("containerStatuses", container(map[string]any{"waiting": map[string]any{"reason": "ErrImagePull", "message": "no such image"}}, false)),
		"pod p on n1: container c waits: CrashLoopBackOff":        status("initContainerStatuses", container(map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}}, false)),
		"pod p on n1: container c ended with exit code 2 (Error)": status("initContainerStatuses", container(map[string]any{"terminated": map[string]any{"exitCode": int64(2), "reason": "Error"}}, false)),
		"pod p on n1: container c runs and is not ready":          status("containerStatuses", container(map[string]any{"running": map[string]any{}}, false)),
		"pod p on n1 has no node: 0/3 nodes are available":        status("conditions", []any{map[string]any{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}}),
		"pod p on n1 has ended (Evicted)":                         map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{"nodeName": "n1"}, "status": map[string]any{"phase": "Failed", "reason": "Evicted"}},
		"pod p on n1 is not ready":                                status("containerStatuses", container(map[string]any{"waiting": map[string]any{"reason": "PodInitializing"}}, false)),
	} {
		if got := object.PodTrouble(pod); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
