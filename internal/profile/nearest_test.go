package profile

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"name", "role", "serial", "interfaces", "systemDisk", "dataDisks"}
	for word, want := range map[string]string{
		"nmae": "name", "Name": "name", "system-disk": "systemDisk", "systemdisk": "systemDisk", "interface": "interfaces", "datadisk": "dataDisks",
		"roll": "role", "x": "", "": "", "gateway": "", "mac": "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("%q: %q, not %q", word, got, want)
		}
	}
}
