package hostkey

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/vm-test/sshnode"
)

// Keys of nobody.
const (
	a   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINXJ6qihKWyirusEsvJI0z7l01boftJK2lgdomTqwJyY a"
	b   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB5ZkFNXFWdLDzwBxN4ZmMsTnCvTsqbAxYeKCkZhHbDA b"
	ecd = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg="
)

func bare(keys ...string) []string {
	var out []string
	for _, k := range keys {
		out = append(out, strings.Join(strings.Fields(k)[:2], " "))
	}
	return out
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name                      string
		pinned, reported, trusted []string
		want                      []string
	}{
		{"nobody vouches", nil, nil, nil, nil},
		{"reported", nil, []string{a}, nil, []string{a}},
		{"trusted", nil, nil, []string{b}, []string{b}},
		{"reinstalled since it was trusted", nil, []string{a}, []string{b, bare(a)[0]}, []string{a, b}},
		{"pinned excludes all others", []string{ecd}, []string{a}, []string{b}, []string{ecd}},
	} {
		if got := Choose(c.pinned, c.reported, c.trusted); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// ssh-keygen reads what we write, and its fingerprints are ours.
func TestKnownHosts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", FileName)
	if got, err := Read(path, "n1"); err != nil || got != nil {
		t.Errorf("no file: %q, %v", got, err)
	}
	if err := Trust(path, "n1", "10.0.2.15:22", []string{ecd, a}, false); err != nil {
		t.Fatal(err)
	}
	if err := Trust(path, "n2", "10.0.2.16:2222", []string{b}, false); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path, "n1"); err != nil || !slices.Equal(got, bare(a, ecd)) {
		t.Errorf("n1: %q, %v", got, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, host := range []string{"n1", "10.0.2.15", "[10.0.2.16]:2222"} {
		out, err := exec.Command("ssh-keygen", "-F", host, "-f", path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "found") {
			t.Errorf("ssh-keygen does not find %s: %v\n%s", host, err, out)
		}
	}
	out, err := exec.Command("ssh-keygen", "-l", "-f", path).CombinedOutput()
	for _, key := range []string{a, b, ecd} {
		print, _ := Fingerprint(key)
		sum, kind, _ := strings.Cut(print, " ")
		if err != nil || !strings.Contains(string(out), sum) || !strings.Contains(string(out), kind) {
			t.Errorf("%s is not what ssh-keygen shows: %v\n%s", print, err, out)
		}
	}
}

func TestTrustAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	for _, node := range []string{"n1", "n2"} {
		if err := Trust(path, node, "10.0.2.15:22", []string{a}, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := Trust(path, "n1", "10.0.2.15:22", []string{a, ecd}, false); err != nil {
		t.Errorf("one more key: %v", err)
	}
	err := Trust(path, "n1", "10.0.2.15:22", []string{b}, false)
	if exit.Of(err) != exit.Refused || !strings.Contains(diag.HintOf(err), "--replace") {
		t.Errorf("another key: %v", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Trust(path, "n1", "10.0.2.99:22", []string{b}, true); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may write it: %v, %v", info.Mode(), err)
	}
	one, _ := Read(path, "n1")
	two, _ := Read(path, "n2")
	if !slices.Equal(one, bare(b)) || !slices.Equal(two, bare(a)) {
		t.Errorf("n1 %q, n2 %q", one, two)
	}
	if err := Trust(path, "n1", "x:22", nil, true); err == nil {
		t.Error("nothing was trusted")
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(path, []byte("# mine\n\nn1 ssh-ed25519 broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, "n1"); err == nil || !strings.Contains(err.Error(), path+":3:") {
		t.Errorf("%v", err)
	}
	if err := Trust(path, "n2", "x:22", []string{a}, false); err == nil {
		t.Error("a damaged file was written over")
	}
}

func TestScan(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	keys, err := Scan(t.Context(), n.Address)
	if err != nil || !slices.Equal(keys, []string{n.HostKey}) {
		t.Errorf("%q, %v; it is %s", keys, err, n.HostKey)
	}
	n.Stop()
	if _, err := Scan(t.Context(), n.Address); err == nil || diag.HintOf(err) == "" {
		t.Errorf("nobody there: %v", err)
	}
}
