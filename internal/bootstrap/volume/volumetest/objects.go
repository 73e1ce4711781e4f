// Package volumetest holds what every judgement about volumes must be right about:
// clusters as lists of Longhorn's objects, and who loses what. The cases are judged
// as they are, and once more as a real API server with Longhorn's definitions gives
// them back.
package volumetest

import (
	"github.com/slipway/slipway/internal/bootstrap/volume"
	"github.com/slipway/slipway/internal/payload/object"
)

// Object is an object of the API.
type Object = map[string]any

// Points in time, in order.
const (
	Early = "2026-05-01T10:00:00Z"
	Late  = "2026-05-02T10:00:00Z"
)

func custom(kind, name string, spec, status Object) Object {
	return Object{
		"apiVersion": volume.API, "kind": kind, "metadata": Object{"name": name, "namespace": volume.Namespace},
		"spec": spec, "status": status,
	}
}

// Volume is a volume in a state, of claim data/NAME.
func Volume(name, state string, replicas int) Object {
	robustness := "unknown"
	if state == "attached" {
		robustness = "healthy"
	}
	return custom("Volume", name, Object{"numberOfReplicas": int64(replicas), "size": "1073741824"},
		Object{"state": state, "robustness": robustness, "kubernetesStatus": Object{"namespace": "data", "pvcName": name}})
}

// Replica is a whole replica of a volume on the disk "DISK-OF-NODE" of a node; more
// changes its spec.
func Replica(volume, node string, more Object) Object {
	spec := Object{
		"volumeName": volume, "nodeID": node, "diskID": "disk-of-" + node, "diskPath": "/var/lib/longhorn/data",
		"healthyAt": Early, "lastHealthyAt": Early, "failedAt": "", "lastFailedAt": "", "active": true,
	}
	for k, v := range more {
		spec[k] = v
	}
	return custom("Replica", volume+"-"+node, spec, Object{"currentState": "running"})
}

// Failed is a replica that has failed; Building one that is not whole yet.
func Failed() Object   { return Object{"failedAt": Late, "lastFailedAt": Late} }
func Building() Object { return Object{"healthyAt": ""} }

// Engine is the engine of an attached volume and the mode of each node's replica.
func Engine(volume string, modes map[string]string) Object {
	all := Object{}
	for node, mode := range modes {
		all[volume+"-"+node] = mode
	}
	return custom("Engine", volume+"-e", Object{"volumeName": volume}, Object{"currentState": "running", "replicaModeMap": all})
}

// Node is Longhorn's object of a node with one disk "data", of which it says something.
func Node(name, message string) Object {
	status := "True"
	if message != "" {
		status = "False"
	}
	return custom("Node", name,
		Object{"name": name, "allowScheduling": true, "disks": Object{"data": Object{"path": "/var/lib/longhorn/data", "allowScheduling": true, "diskType": "filesystem", "tags": []any{}}}},
		Object{"diskStatus": Object{"data": Object{
			"diskUUID": "disk-of-" + name, "diskPath": "/var/lib/longhorn/data", "storageScheduled": int64(0),
			"conditions": []any{Object{"type": "Ready", "status": status, "message": message}},
		}}})
}

// Local is a PersistentVolume on a path of a node, bound to claim data/NAME.
func Local(name, node string) Object {
	return Object{
		"apiVersion": "v1", "kind": "PersistentVolume", "metadata": Object{"name": name},
		"spec": Object{
			"capacity": Object{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"}, "storageClassName": "local",
			"local": Object{"path": "/srv/" + name}, "claimRef": Object{"namespace": "data", "name": name},
			"nodeAffinity": Object{"required": Object{"nodeSelectorTerms": []any{Object{
				"matchExpressions": []any{Object{"key": "kubernetes.io/hostname", "operator": "In", "values": []any{node}}},
			}}}},
		},
	}
}

// Storage sorts objects by kind.
func Storage(objects []Object) volume.Storage {
	var s volume.Storage
	for _, o := range objects {
		switch object.Of(o).Kind {
		case "Volume":
			s.Volumes = append(s.Volumes, o)
		case "Replica":
			s.Replicas = append(s.Replicas, o)
		case "Engine":
			s.Engines = append(s.Engines, o)
		case "Node":
			s.Nodes = append(s.Nodes, o)
		case "PersistentVolume":
			s.Claimed = append(s.Claimed, o)
		}
	}
	return s
}
