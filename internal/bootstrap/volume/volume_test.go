package volume_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/bootstrap/volume"
	"github.com/slipway/slipway/internal/bootstrap/volume/volumetest"
)

func TestAtRisk(t *testing.T) {
	for _, c := range volumetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			got := volumetest.Storage(c.Objects).AtRisk("n1", func(node string) bool { return node != c.Down })
			volumetest.Compare(t, c, got)
		})
	}
	// A replica that is being deleted is none.
	gone := volumetest.Replica("v", "n2", nil)
	gone["metadata"].(map[string]any)["deletionTimestamp"] = volumetest.Late
	s := volumetest.Storage([]volumetest.Object{volumetest.Volume("v", "detached", 2), volumetest.Replica("v", "n1", nil), gone})
	if got := s.AtRisk("n1", ready); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

func ready(string) bool { return true }

func TestDisks(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects []volumetest.Object
		want    []volume.Disk
	}{
		{"none", nil, nil},
		{
			"one in order", []volumetest.Object{volumetest.Node("n1", ""), volumetest.Replica("v", "n1", nil), volumetest.Replica("v", "n2", nil)},
			[]volume.Disk{{Key: "data", UUID: "disk-of-n1", Path: "/var/lib/longhorn/data", Replicas: []string{"v-n1"}}},
		},
		{
			"another one is there", []volumetest.Object{volumetest.Node("n1", "Disk data(/var/lib/longhorn/data) on node n1 is not ready: record diskUUID doesn't match the one on the disk ")},
			[]volume.Disk{{Key: "data", UUID: "disk-of-n1", Path: "/var/lib/longhorn/data", Changed: true}},
		},
		{
			"it is not mounted", []volumetest.Object{volumetest.Node("n1", "Disk data(/var/lib/longhorn/data) on node n1 is not ready: cannot find disk config file, maybe due to a mount error")},
			[]volume.Disk{{Key: "data", UUID: "disk-of-n1", Path: "/var/lib/longhorn/data"}},
		},
		{
			"only replicas remember", []volumetest.Object{volumetest.Replica("v", "n1", nil), volumetest.Replica("w", "n1", nil), volumetest.Replica("x", "n1", volumetest.Object{"diskID": "older"}), volumetest.Replica("y", "n1", volumetest.Object{"diskID": ""})},
			[]volume.Disk{{UUID: "disk-of-n1", Path: "/var/lib/longhorn/data", Replicas: []string{"v-n1", "w-n1"}}, {UUID: "older", Path: "/var/lib/longhorn/data", Replicas: []string{"x-n1"}}},
		},
	} {
		got := volumetest.Storage(c.objects).Disks("n1")
		for i := range got {
			got[i].Spec = nil
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
	d := volume.Disk{Path: "/var/lib/longhorn/data/"}
	if !d.Below([]string{"/x", "/var/lib/longhorn/data"}) || d.Below([]string{"/var/lib/longhorn"}) || (volume.Disk{}).Below([]string{""}) {
		t.Error("paths are compared wrongly")
	}
}

func TestDegraded(t *testing.T) {
	sick := volumetest.Volume("v", "attached", 3)
	sick["status"].(map[string]any)["robustness"] = "degraded"
	engine := volumetest.Engine("v", map[string]string{"n1": "WO", "n2": "RW"})
	engine["status"].(map[string]any)["rebuildStatus"] = map[string]any{"tcp://10.42.0.7:10000": map[string]any{"isRebuilding": true, "progress": int64(40)}}
	replica := volumetest.Replica("v", "n1", volumetest.Building())
	replica["status"].(map[string]any)["storageIP"] = "10.42.0.7"
	s := volumetest.Storage([]volumetest.Object{
		sick, engine, replica, volumetest.Replica("v", "n2", nil),
		volumetest.Volume("rests", "detached", 2), volumetest.Replica("rests", "n2", nil),
		volumetest.Volume("whole", "detached", 1), volumetest.Replica("whole", "n2", nil),
		volumetest.Volume("fine", "attached", 1), volumetest.Replica("fine", "n2", nil),
	})
	missing, resting := s.Degraded(ready)
	if len(missing) != 1 || missing[0].Volume != "v" || !strings.Contains(missing[0].Why, "degraded, 1 of 3 replicas are whole; n1 40 %") || resting != 1 {
		t.Errorf("%+v, %d", missing, resting)
	}
}
