package profilefile

import (
	"testing"
)

func TestProfiles(t *testing.T) {
	for _, name := range []string{"base", "lab", "dev", "prod"} {
		p, err := Check("../../profiles/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if name == "lab" && p.Cluster.Nodes[0].Interfaces[0].MAC != "52:54:00:12:34:56" {
			t.Errorf("%+v", p.Cluster)
		}
	}
}
