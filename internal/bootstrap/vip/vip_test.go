package vip

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/sequence"
)

// fake is a server: its files, and keepalived as far as systemd tells. The real one is
// met in vm-test/vip.
type fake struct {
	files map[string]string
	modes map[string]fs.FileMode
	state string
	holds bool
	told  []string
}

func (f *fake) Get(_ context.Context, path string) ([]byte, error) {
	text, ok := f.files[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (f *fake) Put(_ context.Context, path string, perm fs.FileMode, data []byte) error {
	f.files[path], f.modes[path] = string(data), perm
	f.told = append(f.told, "put "+path)
	return nil
}

func (f *fake) Run(_ context.Context, command string, _ []byte) ([]byte, error) {
	switch {
	case strings.HasPrefix(command, "systemctl show"):
		return []byte(f.state + "\n"), nil
	case strings.Contains(command, "reload-or-restart keepalived.service"):
		f.told = append(f.told, "reload")
		if f.state != "condition" {
			f.state = "active"
		} else {
			f.state = "inactive"
		}
	case command == "systemctl stop keepalived.service; rm -f /etc/slipway/keepalived.conf":
		f.told, f.state = append(f.told, "stop"), "inactive"
		delete(f.files, "/etc/slipway/keepalived.conf")
	case strings.HasPrefix(command, "ip -oneline -4 address show to "):
		if f.holds {
			return []byte("2: enp1s0 inet\n"), nil
		}
	default:
		return nil, errors.New("it was told " + command)
	}
	return nil, nil
}

type nobody struct{}

func (nobody) Ask(_ context.Context, names ...string) []facts.Seen {
	return make([]facts.Seen, len(names))
}

func servers(t *testing.T) (map[string]*fake, Options) {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "..", "profiles", "dev.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*fake{}
	for _, n := range p.Cluster.Nodes {
		all[n.Name] = &fake{files: map[string]string{}, modes: map[string]fs.FileMode{}, state: "inactive"}
	}
	return all, Options{
		Cluster: p.Cluster, Node: func(name string) Node { return all[name] }, Survey: nobody{},
		Pause: func(ctx context.Context) error { return errors.New("enough") },
	}
}

func run(t *testing.T, o Options) (int, error) {
	t.Helper()
	r := sequence.Runner{Now: time.Now, On: func(sequence.Event) {}}
	return r.Run(t.Context(), Steps(o))
}

func TestConfigured(t *testing.T) {
	all, o := servers(t)
	all["n2"].holds = true
	for try, want := range []int{3, 0} {
		if did, err := run(t, o); did != want || err != nil {
			t.Errorf("run %d did %d, %v", try, did, err)
		}
	}
	for name, f := range all {
		if !strings.Contains(f.files["/etc/slipway/keepalived.conf"], "192.168.124.10/32") || f.modes["/etc/slipway/check-api"] != 0o755 || f.state != "active" {
			t.Errorf("%s: %+v", name, f)
		}
		if got := strings.Join(f.told, ", "); got != "put /etc/slipway/check-api, put /etc/slipway/keepalived.conf, reload" {
			t.Errorf("%s: %s", name, got)
		}
	}
	o.Cluster.Network.APIVIP = netip.MustParseAddr("192.168.124.9")
	if did, err := run(t, o); did != 3 || err != nil {
		t.Errorf("another address: did %d, %v", did, err)
	}
}

func TestHolders(t *testing.T) {
	for want, holders := range map[string][]string{"no server holds it": nil, "n1 and n3 hold it at once": {"n1", "n3"}} {
		all, o := servers(t)
		for _, h := range holders {
			all[h].holds = true
		}
		changes, err := o.held(t.Context())
		if err != nil || len(changes) != 1 || !strings.Contains(changes[0].Why, want) {
			t.Errorf("%v, %v, want %q", changes, err, want)
		}
	}
}

func TestRemoved(t *testing.T) {
	all, o := servers(t)
	all["n1"].holds = true
	if _, err := run(t, o); err != nil {
		t.Fatal(err)
	}
	o.Cluster.Network.APIVIP = netip.Addr{}
	for try, want := range []int{3, 0} {
		if did, err := run(t, o); did != want || err != nil {
			t.Errorf("run %d did %d, %v", try, did, err)
		}
	}
	if all["n3"].state != "inactive" || len(all["n3"].files) != 1 {
		t.Errorf("%+v", all["n3"])
	}
}

func TestPassedOver(t *testing.T) {
	all, o := servers(t)
	all["n1"].state = "condition"
	if _, err := run(t, o); err == nil || !strings.Contains(err.Error(), "was passed over") {
		t.Errorf("%v", err)
	}
}
