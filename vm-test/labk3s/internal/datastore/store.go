// Package datastore is etcd as k3s runs it: one member in each server, which starts
// a cluster, joins one as a learner, or goes on with what is on its disk.
package datastore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/slipway/slipway/vm-test/labk3s/internal/member"
	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
)

// Local is where the server itself reaches its member.
const Local = "https://127.0.0.1:2379"

const (
	askTime     = 10 * time.Second // for a question to the cluster
	metricsPort = "2381"
)

// ErrRemoved is wrapped by the error of a member that the others have removed.
var ErrRemoved = errors.New("this node has been removed from the cluster; restart k3s to rejoin it")

// Store is the member of this server.
type Store struct {
	dir      string // server/db/etcd
	name     string
	nodeName string
	address  string
	files    pki.Files
	settings settings.Settings
	client   atomic.Pointer[clientv3.Client] // others ask while the member starts
	etcd     *embed.Etcd
}

// Open prepares the member, and starts nothing. Its name is the node's and eight
// digits, remembered beside its data. Data of a member that was removed is put aside.
func Open(s settings.Settings, f pki.Files) (*Store, error) {
	d := &Store{dir: s.ServerDir("db", "etcd"), nodeName: s.NodeName, address: s.NodeIP, files: f, settings: s}
	if err := d.bury(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, err
	}
	return d, d.readName()
}

func (d *Store) nameFile() string  { return filepath.Join(d.dir, "name") }
func (d *Store) tombstone() string { return filepath.Join(d.dir, "tombstone") }

// bury puts the data aside of a member that was removed: it can never go on with it.
func (d *Store) bury() error {
	if _, err := os.Stat(d.tombstone()); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	slog.Info("tombstone file has been detected, removing data dir to rejoin the cluster")
	return os.Rename(d.dir, fmt.Sprintf("%s-old-%d", d.dir, time.Now().Unix()))
}

func (d *Store) readName() error {
	text, err := os.ReadFile(d.nameFile())
	if err == nil {
		d.name = strings.TrimSpace(string(text))
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b := make([]byte, 4)
	rand.Read(b) // it cannot fail
	d.name = d.nodeName + "-" + hex.EncodeToString(b)
	return os.WriteFile(d.nameFile(), []byte(d.name), 0o600)
}

// Initialized reports whether the member has data of a cluster.
func (d *Store) Initialized() bool {
	st, err := os.Stat(filepath.Join(d.dir, "member", "wal"))
	return err == nil && st.IsDir()
}

// Name and Address are what the member is known by.
func (d *Store) Name() string    { return d.name }
func (d *Store) Address() string { return d.address }

func (d *Store) peerURL() string   { return "https://" + d.address + ":2380" }
func (d *Store) clientURL() string { return "https://" + d.address + ":2379" }

func tls(ca, p pki.Pair) member.Files { return member.Files{CA: ca.Cert, Cert: p.Cert, Key: p.Key} }

func (d *Store) clientTLS() member.Files { return tls(d.files.EtcdServerCA(), d.files.EtcdClient()) }

func (d *Store) config() member.Config {
	return member.Config{
		Name: d.name, Dir: d.dir,
		Clients: []string{Local, d.clientURL()}, Peer: d.peerURL(), Metrics: "http://127.0.0.1:" + metricsPort,
		Initial:   d.name + "=" + d.peerURL(),
		ClientTLS: tls(d.files.EtcdServerCA(), d.files.EtcdServing()),
		PeerTLS:   tls(d.files.EtcdPeerCA(), d.files.EtcdPeer()),
		Heartbeat: d.settings.Heartbeat, Election: d.settings.Election,
	}
}

// Start starts the member: on its data when it has some, else by joining the cluster
// whose voters are given, else, when nobody is given, as a new cluster. It returns
// when the member serves.
func (d *Store) Start(ctx context.Context, voters []string) error {
	cfg := d.config()
	cfg.Forget = d.settings.ClusterReset
	if !d.Initialized() && len(voters) > 0 {
		initial, err := d.enter(ctx, voters)
		if err != nil {
			return err
		}
		cfg.Initial, cfg.Joining = initial, true
	}
	slog.Info("Starting etcd", "name", d.name, "cluster", cfg.Initial, "existing", d.Initialized())
	e, err := member.Start(ctx, cfg)
	if err != nil {
		return d.bewail(err)
	}
	d.etcd = e
	c, err := member.Connect([]string{Local}, d.clientTLS())
	if err != nil {
		return err
	}
	d.client.Store(c)
	return nil
}

// enter adds the member to the cluster. A member of the same node must be gone: which
// of the two is to live is not decided here.
func (d *Store) enter(ctx context.Context, voters []string) (initial string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*askTime)
	defer cancel()
	c, err := member.Connect(voters, d.clientTLS())
	if err != nil {
		return "", err
	}
	defer c.Close()
	list, err := c.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("asking for the members of etcd: %w", err)
	}
	if other := d.namesake(list.Members); other != "" {
		os.Remove(d.nameFile()) // as k3s does: the name is made anew for the next try
		return "", fmt.Errorf("duplicate node name found, please use a unique name for this node: member %s", other)
	}
	initial, err = member.Join(ctx, c, d.name, d.peerURL())
	if err != nil {
		return "", fmt.Errorf("ETCD join failed: %w", err)
	}
	return initial, nil
}

// namesake is the name of another member of the same node, or "".
func (d *Store) namesake(members []*etcdserverpb.Member) string {
	for _, m := range members {
		if i := strings.LastIndex(m.Name, "-"); i > 0 && m.Name[:i] == d.nodeName && m.Name != d.name {
			return m.Name
		}
	}
	return ""
}

// Wait waits until ctx ends or the member does, and says why. A member that was
// removed leaves a mark, so that the next start joins anew.
func (d *Store) Wait(ctx context.Context) error { return d.bewail(member.Wait(ctx, d.etcd)) }

func (d *Store) bewail(err error) error {
	if !errors.Is(err, member.ErrRemoved) {
		return err
	}
	return errors.Join(ErrRemoved, os.WriteFile(d.tombstone(), nil, 0o600))
}

// Close ends the member; another leads from then on, if this one did. It does not
// wait for those who watch: they would not go before the process does.
func (d *Store) Close() {
	if d.etcd == nil {
		return
	}
	d.etcd.Server.Stop()
}

// Client is a client of the member, once it has started.
func (d *Store) Client() *clientv3.Client { return d.client.Load() }
