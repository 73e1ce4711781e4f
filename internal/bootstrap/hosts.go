package bootstrap

import (
	"context"
	"io/fs"
	"net"
	"path/filepath"
	"slices"

	"github.com/slipway/slipway/internal/bootstrap/machines"
	"github.com/slipway/slipway/internal/bootstrap/ssh"
	"github.com/slipway/slipway/internal/bootstrap/ssh/hostkey"
	"github.com/slipway/slipway/internal/cluster"
)

// remote is a node of the profile, whatever system is on it by now: after an install
// it has other host keys, and with them another connection.
type remote struct {
	s    *Session
	node cluster.Node
}

// node is a node by name; the caller has it from the profile.
func (s *Session) node(name string) remote {
	i := slices.IndexFunc(s.Cluster.Nodes, func(n cluster.Node) bool { return n.Name == name })
	return remote{s, s.Cluster.Nodes[i]}
}

// host is the connection to the node as it is known now.
func (r remote) host(ctx context.Context) (*ssh.Host, error) {
	keys, err := r.s.hostKeys(ctx, r.node)
	if err != nil {
		return nil, err
	}
	r.s.hostsMu.Lock()
	defer r.s.hostsMu.Unlock()
	is, ok := r.s.hosts[r.node.Name]
	if ok && slices.Equal(is.keys, keys) {
		return is.Host, nil
	}
	if ok {
		is.Close()
	}
	user := operator(r.s.Cluster)
	h := ssh.New(ssh.Options{
		Node: r.node.Name, Address: r.s.addresses[r.node.Name], User: user.Name, Authorized: user.Keys,
		HostKeys: keys, Login: r.s.login, Redact: r.s.Redactor.Text,
	})
	r.s.hosts[r.node.Name] = connected{h, keys}
	return h, nil
}

// operator is who logs in: the first user who may become root.
func operator(c cluster.Cluster) cluster.User {
	for _, u := range c.Access.Users {
		if u.Sudo {
			return u
		}
	}
	return c.Access.Users[0]
}

// connected is a connection and the keys by which the node is known to it.
type connected struct {
	*ssh.Host
	keys []string
}

// hostKeys are the keys that a node may show: those of the profile, or those that its
// install reported to pxed, or those that were trusted by hand.
func (s *Session) hostKeys(ctx context.Context, n cluster.Node) ([]string, error) {
	trusted, err := hostkey.Read(filepath.Join(s.State, hostkey.FileName), n.Name)
	if err != nil {
		return nil, err
	}
	var reported []string
	if len(n.HostKeys) == 0 && s.record.Pxed != nil {
		// Without a pxed nobody has reported anything; that is said by the connection.
		reported, _ = machines.Machines{Pxed: s.record.Pxed}.HostKeys(ctx, n.Name)
	}
	return hostkey.Choose(n.HostKeys, reported, trusted), nil
}

func (r remote) Run(ctx context.Context, command string, stdin []byte) ([]byte, error) {
	h, err := r.host(ctx)
	if err != nil {
		return nil, err
	}
	return h.Run(ctx, command, stdin)
}

func (r remote) Get(ctx context.Context, path string) ([]byte, error) {
	h, err := r.host(ctx)
	if err != nil {
		return nil, err
	}
	return h.Get(ctx, path)
}

func (r remote) Put(ctx context.Context, path string, perm fs.FileMode, data []byte) error {
	h, err := r.host(ctx)
	if err != nil {
		return err
	}
	return h.Put(ctx, path, perm, data)
}

func (r remote) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	h, err := r.host(ctx)
	if err != nil {
		return nil, err
	}
	return h.Dial(ctx, network, address)
}
