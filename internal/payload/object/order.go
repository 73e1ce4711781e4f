package object

import (
	"cmp"
	"slices"
	"strings"
)

// order is in which order kinds are made: what others live in, refer to or are
// allowed by comes first. A kind that is not listed comes last: it is most likely
// one that a definition before it brought.
var order = []string{
	"Namespace",
	"CustomResourceDefinition",
	"PriorityClass",
	"StorageClass",
	"ResourceQuota",
	"LimitRange",
	"ServiceAccount",
	"ClusterRole",
	"ClusterRoleBinding",
	"Role",
	"RoleBinding",
	"Secret",
	"ConfigMap",
	"NetworkPolicy",
	"PersistentVolume",
	"PersistentVolumeClaim",
	"Service",
	"DaemonSet",
	"Deployment",
	"StatefulSet",
	"Job",
	"CronJob",
	"PodDisruptionBudget",
	"HorizontalPodAutoscaler",
	"APIService",
	"MutatingWebhookConfiguration",
	"ValidatingWebhookConfiguration",
	"ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding",
}

// Sorted are the objects in the order in which they can be made; the order within
// a kind stays. The list that was given is left as it is.
func Sorted(objects []map[string]any) []map[string]any {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b map[string]any) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

func rank(o map[string]any) int {
	kind := Text(o, "kind")
	if at := slices.Index(order, kind); at >= 0 && builtIn(Of(o).Group()) {
		return at
	}
	return len(order)
}

// builtIn reports whether a group is of Kubernetes itself. A kind of somebody else
// can have the name of one of these: Knative has a Service as well.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".x-k8s.io")
}

// Definition reports whether o defines a kind.
func Definition(o map[string]any) bool {
	return Text(o, "kind") == "CustomResourceDefinition"
}
