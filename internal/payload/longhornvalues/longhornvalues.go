// Package longhornvalues decides how Longhorn is installed and on which disks it
// may keep data: the values of its chart, and the label and the annotation that a
// Kubernetes node must have before Longhorn's manager starts on it.
//
// The keys are those of Longhorn 1.9. Its rules for the label and the annotation: a
// disk is made from them only as long as the node has none, and with
// createDefaultDiskLabeledNodes unset the first start makes one on the root file system.
package longhornvalues

import (
	"encoding/json"
	"fmt"
	"path"

	"github.com/slipway/slipway/internal/cluster"
)

// Where and as what Longhorn is installed.
const (
	Release   = "longhorn"
	Namespace = "longhorn-system"
)

// What the node object says about disks.
const (
	DiskLabel      = "node.longhorn.io/create-default-disk"
	DiskLabelValue = "config" // as the annotation says
	DiskAnnotation = "node.longhorn.io/default-disks-config"
)

// Values are the chart's values, in the forms in which JSON is decoded.
func Values(c cluster.Cluster) map[string]any {
	l, three := c.Longhorn, int64(min(3, len(c.Nodes)))
	return map[string]any{
		"defaultSettings": map[string]any{
			"createDefaultDiskLabeledNodes": true,
			"defaultDataPath":               l.DataPath,
			"defaultReplicaCount":           int64(l.Replicas),
			// Two replicas on one node are lost with it.
			"replicaSoftAntiAffinity": false,
			// A drain stops at the last healthy replica of a volume.
			"nodeDrainPolicy": "block-if-contains-last-replica",
			// Pods of a dead node go on elsewhere; otherwise they wait for it for ever.
			"nodeDownPodDeletionPolicy": "delete-both-statefulset-and-deployment-pod",
			// The disks hold nothing else: the defaults, 30 and 25 percent, are for
			// disks that the system is on as well.
			"storageReservedPercentageForDefaultDisk": int64(5),
			"storageMinimalAvailablePercentage":       int64(10),
			// Nothing calls home.
			"upgradeChecker":                      false,
			"allowCollectingLonghornUsageMetrics": false,
		},
		"persistence": map[string]any{
			"defaultClass":             true,
			"defaultClassReplicaCount": int64(l.Replicas),
		},
		"csi": map[string]any{
			"kubeletRootDir":          "/var/lib/kubelet",
			"attacherReplicaCount":    three,
			"provisionerReplicaCount": three,
			"resizerReplicaCount":     three,
			"snapshotterReplicaCount": three,
		},
		"longhornUI": map[string]any{"replicas": int64(min(2, len(c.Nodes)))},
		// A Helm hook; Flux would run it at its own times.
		"preUpgradeChecker": map[string]any{"jobEnabled": false},
	}
}

// Mount is the file system of one data disk.
type Mount struct {
	Disk string // name of the data disk in the profile
	Path string // where it is mounted
}

// Mounts are a node's data disks in the order of the profile.
func Mounts(c cluster.Cluster, n cluster.Node) []Mount {
	var out []Mount
	for _, d := range n.Data {
		out = append(out, Mount{Disk: d.Name, Path: path.Join(c.Longhorn.DataPath, d.Name)})
	}
	return out
}

// disk is one item of the annotation.
type disk struct {
	Name            string   `json:"name"`
	Path            string   `json:"path"`
	AllowScheduling bool     `json:"allowScheduling"`
	Tags            []string `json:"tags"`
}

// Annotation is the value of DiskAnnotation: every data disk, under its own name
// instead of one that follows from its file system. It is "" for a node without any,
// which then gets no label either.
func Annotation(c cluster.Cluster, n cluster.Node) (string, error) {
	var disks []disk
	for _, m := range Mounts(c, n) {
		disks = append(disks, disk{Name: m.Disk, Path: m.Path, AllowScheduling: true, Tags: []string{}})
	}
	if disks == nil {
		return "", nil
	}
	text, err := json.Marshal(disks)
	if err != nil {
		return "", fmt.Errorf("encoding the disks of node %s: %w", n.Name, err)
	}
	return string(text), nil
}
