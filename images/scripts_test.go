package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script is one of the node's scripts with the paths of a directory of the test.
func script(t *testing.T, name, root string, paths ...string) string {
	t.Helper()
	tree, err := Overlay()
	if err != nil {
		t.Fatal(err)
	}
	e, ok := tree.Lookup("usr/lib/slipway/" + name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	text := string(e.Content)
	for _, p := range paths {
		text = strings.ReplaceAll(text, p, root+p)
	}
	out := filepath.Join(root, name)
	if err := os.WriteFile(out, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return out
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// k3s finds the archives of the slot that runs, and no longer those of the last one;
// what somebody else put there stays.
func TestImagesAreLinked(t *testing.T) {
	root := t.TempDir()
	run := script(t, "k3s-images", root, "/usr/share/slipway", "/var/lib/rancher")
	slot, state := filepath.Join(root, "usr/share/slipway/images"), filepath.Join(root, "var/lib/rancher/k3s/agent/images")
	look := func(want string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "sh", run).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		entries, err := os.ReadDir(state)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			if _, err := os.Stat(filepath.Join(state, e.Name())); err != nil {
				t.Errorf("%s leads nowhere", e.Name())
			}
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	look("") // an image without any
	write(t, filepath.Join(slot, "k3s.tar.zst"), "1")
	write(t, filepath.Join(slot, "images.tar"), "1")
	write(t, filepath.Join(state, "mine.tar"), "1")
	look("mine.tar slipway-images.tar slipway-k3s.tar.zst")
	if err := os.Remove(filepath.Join(slot, "images.tar")); err != nil {
		t.Fatal(err)
	}
	look("mine.tar slipway-k3s.tar.zst")
}

// The interface is the one that has the address, whatever it is called, in a network
// of its own.
func TestInterfaceIsFound(t *testing.T) {
	root := t.TempDir()
	run := script(t, "keepalived-lan", root, "/etc/slipway", "/run/slipway")
	conf := filepath.Join(root, "etc/slipway/keepalived.conf")
	result := filepath.Join(root, "run/slipway/keepalived-lan.conf")
	inside := func() ([]byte, error) {
		return exec.CommandContext(t.Context(), "unshare", "--map-root-user", "--net", "sh", "-ec",
			"ip link add enp9s0 type veth peer name other; ip address add 192.0.2.11/24 dev enp9s0; ip address add 192.0.2.1/24 dev other; ip link set enp9s0 up; ip link set other up; sh "+run).CombinedOutput()
	}
	for _, text := range []string{"    unicast_src_ip 192.0.2.11\n", "    mcast_src_ip 192.0.2.11\n"} {
		write(t, conf, "vrrp_instance api {\n"+text+"    unicast_peer {\n        192.0.2.1\n    }\n}\n")
		out, err := inside()
		got, rerr := os.ReadFile(result)
		if err != nil || rerr != nil || string(got) != "$LAN=enp9s0\n" {
			t.Errorf("%q: %v, %v: %s%s", text, err, rerr, out, got)
		}
	}
	write(t, conf, "    unicast_src_ip 192.0.2.12\n")
	if out, err := inside(); err == nil || !strings.Contains(string(out), "no interface has the address 192.0.2.12") {
		t.Errorf("an address that nobody has: %v: %s", err, out)
	}
}
