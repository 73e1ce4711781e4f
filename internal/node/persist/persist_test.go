package persist

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/hosttool"
)

func TestTable(t *testing.T) {
	seen := map[string]int{}
	for n, e := range Table() {
		if e.Why == "" || e.Mode == 0 || !strings.HasPrefix(e.Path, "/") || filepath.Clean(e.Path) != e.Path {
			t.Errorf("entry %+v is not complete", e)
		}
		if _, twice := seen[e.Path]; twice {
			t.Errorf("%s is listed twice", e.Path)
		}
		seen[e.Path] = n
		// What lies inside another entry comes after it, or it would be covered.
		for other, at := range seen {
			if strings.HasPrefix(other, e.Path+"/") && at < n {
				t.Errorf("%s comes after %s, which lies in it", e.Path, other)
			}
		}
	}
	for _, path := range []string{"/etc", "/var", "/home", "/root", "/opt", "/tmp", "/var/lib/dpkg", "/var/lib/cloud",
		"/etc/machine-id", "/etc/rancher", "/etc/slipway", "/etc/iscsi/initiatorname.iscsi", "/etc/ssh/ssh_host_ed25519_key"} {
		if _, ok := seen[path]; !ok {
			t.Errorf("%s is missing", path)
		}
	}
}

// TestIdentityFiles: what nodeinit makes is what is copied into /etc.
func TestIdentityFiles(t *testing.T) {
	made := map[string]bool{}
	for _, id := range identities() {
		for _, f := range id.files {
			made[f] = true
		}
	}
	for _, e := range Table() {
		if (e.Kind == File) != made[e.Path] {
			t.Errorf("%s: kept as a file %v, made by nodeinit %v", e.Path, e.Kind == File, made[e.Path])
		}
	}
}

func TestEnsureIdentity(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	made, err := EnsureIdentity(one)
	if err != nil || len(made) != len(identities()) {
		t.Fatalf("made %v, %v", made, err)
	}
	if _, err := EnsureIdentity(two); err != nil {
		t.Fatal(err)
	}
	before := contents(t, one)
	for path, data := range contents(t, two) {
		if bytes.Equal(data, before[path]) {
			t.Errorf("two nodes have the same %s", path)
		}
	}
	if made, err := EnsureIdentity(one); err != nil || len(made) != 0 {
		t.Errorf("the second boot makes %v, %v", made, err)
	}
	for path, data := range contents(t, one) {
		if !bytes.Equal(data, before[path]) {
			t.Errorf("%s changed at the second boot", path)
		}
	}
}

func TestDamagedIdentityIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	if _, err := EnsureIdentity(dir); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	damage := map[string][]byte{
		"/etc/machine-id":                nil,
		"/etc/iscsi/initiatorname.iscsi": []byte("GenerateName=yes\n"),
		"/etc/ssh/ssh_host_ecdsa_key":    before["/etc/ssh/ssh_host_ecdsa_key"][:40],
	}
	for path, data := range damage {
		if err := os.WriteFile(filepath.Join(dir, path), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := EnsureIdentity(dir)
	if err != nil || len(made) != 3 {
		t.Fatalf("made %v, %v", made, err)
	}
	if !bytes.Equal(contents(t, dir)["/etc/ssh/ssh_host_ed25519_key"], before["/etc/ssh/ssh_host_ed25519_key"]) {
		t.Error("a good key was replaced")
	}
}

// TestForeignReader lets OpenSSH read the keys.
func TestForeignReader(t *testing.T) {
	dir := t.TempDir()
	if _, err := EnsureIdentity(dir); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{"ssh_host_ed25519_key": "ssh-ed25519 ", "ssh_host_ecdsa_key": "ecdsa-sha2-nistp256 "} {
		key := filepath.Join(dir, "etc/ssh", name)
		out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: "ssh-keygen", Args: []string{"-y", "-f", key}})
		if err != nil {
			t.Fatal(err)
		}
		public, err := os.ReadFile(key + ".pub")
		if err != nil || !strings.HasPrefix(string(out), kind) || strings.TrimSpace(string(public)) != strings.TrimSpace(string(out)) {
			t.Errorf("%s: ssh-keygen reads %q, the public half is %q", name, out, public)
		}
	}
}

func contents(t *testing.T, root string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, id := range identities() {
		for _, f := range id.files {
			st, err := os.Stat(filepath.Join(root, f))
			if err != nil {
				t.Fatal(err)
			}
			if st.Mode().Perm() != modeOf(f) && !strings.Contains(t.Name(), "Damaged") {
				t.Errorf("%s has mode %v", f, st.Mode())
			}
			data, err := os.ReadFile(filepath.Join(root, f))
			if err != nil {
				t.Fatal(err)
			}
			all[f] = data
		}
	}
	return all
}

func TestPopulate(t *testing.T) {
	slot, state := t.TempDir(), t.TempDir()
	files := map[string]fs.FileMode{
		"var/lib/systemd/thing": 0o640, "var/lib/dpkg/status": 0o644, "var/lib/cloud/old": 0o644,
		"var/spool/cron/crontab": 0o600, "root/.profile": 0o644,
	}
	for name, mode := range files {
		put(t, slot, name, "from the slot", mode)
	}
	if err := os.Chmod(filepath.Join(slot, "root"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/run", filepath.Join(slot, "var/run")); err != nil {
		t.Fatal(err)
	}
	put(t, state, "var/lib/systemd/thing", "of the node", 0o600)
	r := Root{Slot: slot, State: state}
	if changed, err := r.Populate("hash1"); err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	want(t, state, "var/lib/systemd/thing", "of the node", 0o600)
	want(t, state, "var/spool/cron/crontab", "from the slot", 0o600)
	want(t, state, "root/.profile", "from the slot", 0o644)
	for _, name := range []string{"var/lib/dpkg/status", "var/lib/cloud/old"} {
		if _, err := os.Lstat(filepath.Join(state, name)); err == nil {
			t.Errorf("%s was copied though something else is mounted there", name)
		}
	}
	for name, mode := range map[string]fs.FileMode{"var/lib/dpkg": 0o755, "root": 0o700, "home": 0o755, "opt": 0o755, "etc/rancher": 0o755} {
		if st, err := os.Stat(filepath.Join(state, name)); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if target, err := os.Readlink(filepath.Join(state, "var/run")); err != nil || target != "/run" {
		t.Errorf("link to %q, %v", target, err)
	}
	put(t, slot, "var/lib/new/file", "next version", 0o644)
	if changed, err := r.Populate("hash1"); err != nil || changed {
		t.Errorf("same slot: changed %v, %v", changed, err)
	}
	if changed, err := r.Populate("hash2"); err != nil || !changed {
		t.Errorf("other slot: changed %v, %v", changed, err)
	}
	want(t, state, "var/lib/new/file", "next version", 0o644)
}

func put(t *testing.T, root, name, text string, mode fs.FileMode) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, root, name, text string, mode fs.FileMode) {
	t.Helper()
	path := filepath.Join(root, name)
	data, err := os.ReadFile(path)
	if err != nil || string(data) != text {
		t.Errorf("%s holds %q, %v", name, data, err)
		return
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
		t.Errorf("%s has mode %v, %v", name, st.Mode(), err)
	}
}
