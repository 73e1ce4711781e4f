// Package longhornvalues decides how Longhorn is installed and on which disks it
// may keep data: the values of its chart, the label and the annotation that a
// Kubernetes node must have before Longhorn's manager starts on it, and the lines of
// the node's fstab.
//
// The keys are those of Longhorn 1.9. Its rules for the label and the annotation: a
// disk is made from them only as long as the node has none, and with
// createDefaultDiskLabeledNodes unset the first start makes one on the root file system.
package longhornvalues

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

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

// FstabPath is where bootstrap writes the data mounts of a node. /etc/fstab of the
// image leads there: /etc itself is made anew at every boot.
const FstabPath = "/etc/slipway/fstab"

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

// Fstab are the node's data mounts for fstab(5). uuids has, by name of the data disk,
// the UUID of the file system that was made for it on the node.
//
// k3s requires the mounts and comes after them (systemd.mount(5)): without its disk
// Longhorn would fill the system's. A node whose disk is gone comes up all the same,
// without k3s, so that somebody can look.
func Fstab(c cluster.Cluster, n cluster.Node, uuids map[string]string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("# Written by Slipway: file systems of the data disks.\n")
	for _, m := range Mounts(c, n) {
		uuid := uuids[m.Disk]
		if uuid == "" {
			return nil, fmt.Errorf("node %s: the file system of data disk %s is not known", n.Name, m.Disk)
		}
		fmt.Fprintf(&b, "UUID=%s %s ext4 noatime,nofail,x-systemd.device-timeout=60s,x-systemd.required-by=k3s.service,x-systemd.before=k3s.service,x-systemd.required-by=k3s-agent.service,x-systemd.before=k3s-agent.service 0 2\n",
			uuid, escape(m.Path))
	}
	return []byte(b.String()), nil
}

// escape writes a path as fstab(5) wants it.
func escape(p string) string {
	return strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`).Replace(p)
}
