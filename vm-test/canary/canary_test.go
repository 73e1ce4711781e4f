package canary

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// limit bounds the wait for bootstrap to come to the secret; it takes seconds.
const limit = 3 * time.Minute

func TestNoSecretIsSeen(t *testing.T) {
	l := open(t)
	stop := watch()
	for node, n := range l.nodes {
		if err := l.bootstrap(t, "trust", node, "--fingerprint", "SHA256:").Run(); err != nil {
			t.Fatalf("%s at %s: %v\n%s", node, n.Address, err, l.said.String())
		}
	}
	more := []string{"--build", images(t), "--key", key(t), "--age-key", l.key}
	if err := l.bootstrap(t, "plan", more...).Run(); err != nil {
		t.Fatalf("plan: %v\n%s", err, l.said.String())
	}
	up := l.bootstrap(t, "up", more...)
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	l.awaitToken(t)
	up.Process.Signal(syscall.SIGTERM)
	if err := up.Wait(); err == nil {
		t.Errorf("up ended well, with no k3s anywhere:\n%s", l.said.String())
	}
	l.gossip(t)
	bundle := filepath.Join(l.dir, "bundle.tar.gz")
	for _, args := range [][]string{{"status"}, {"support", "--age-key", l.key, "-O", bundle}, {"verify", "--build", images(t), "--key", key(t), "--age-key", l.key}, {"snapshot"}, {"adopt"}} {
		l.bootstrap(t, args[0], args[1:]...).Run() // most have nothing to say yet; what they say counts
	}
	for _, line := range stop() {
		t.Errorf("a process has it in its arguments: %s", line)
	}
	if hit := holds(l.said.Bytes()); hit != "" {
		t.Errorf("bootstrap printed %s:\n%s", hit, l.said.String())
	}
	l.searchState(t)
	searchBundle(t, bundle)
}

// awaitToken waits until the first node has the token: readable for root alone.
func (l *lab) awaitToken(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, n := range l.nodes {
			path := n.Path("/etc/rancher/k3s/token")
			text, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(text, []byte(token)) {
				continue
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the token's file: %v, %v", info.Mode(), err)
			}
			return
		}
	}
	t.Fatalf("no node got the token, so that nothing was tested:\n%s", l.said.String())
}

// gossip makes the nodes say the secrets, as a careless program's log does.
func (l *lab) gossip(t *testing.T) {
	for _, n := range l.nodes {
		n.Program(t, "journalctl", "echo 'started with --token "+token+" and "+other+"'")
		n.Program(t, "systemctl", "echo 'k3s "+token+"'; echo 'failed: "+token+"' >&2; exit 1")
	}
}

// searchState looks through everything that bootstrap keeps.
func (l *lab) searchState(t *testing.T) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(l.state(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if hit := holds(text); hit != "" {
			t.Errorf("%s holds %s", path, hit)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files of state, %v", files, err)
	}
}

func searchBundle(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	redacted := 0
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if hit := holds(text); hit != "" {
			t.Errorf("%s in the bundle holds %s", h.Name, hit)
		}
		redacted += bytes.Count(text, []byte("<redacted>"))
	}
	if redacted == 0 {
		t.Error("nothing in the bundle was redacted, so that nothing was tested")
	}
}

// images is the directory of the build.
func images(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SLIPWAY_IMAGE_DIR")
	if dir == "" {
		dir = "../../out/lab"
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("%v\nhint: run make build image", err)
	}
	return dir
}

func key(t *testing.T) string {
	t.Helper()
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(config, "slipway", "sign_ed25519.pub")
}
