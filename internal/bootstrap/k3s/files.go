package k3s

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/sequence"
)

// written is a file that a node shall have.
type written struct {
	path    string
	perm    fs.FileMode
	content []byte
}

// unequal are the files that a node has not, or not so.
type unequal struct {
	files   []written // to be written, the one that makes k3s start last
	changes []sequence.Change
}

// compare reads what the node has. The token is compared by its digest, so that no
// look at a node carries it.
func (o Options) compare(ctx context.Context, v view, n cluster.Node) (unequal, error) {
	join := v.join(n.Name)
	have, err := o.get(ctx, n.Name, k3sconf.ConfigPath)
	if err != nil {
		return unequal{}, err
	}
	if v.seen[n.Name].Facts.K3s.Knows() {
		join = kept(v.cluster, n, have, join)
	}
	tree, err := k3sconf.Files(v.cluster, n, join)
	if err != nil {
		return unequal{}, err
	}
	var out unequal
	var config *written
	for e := range tree.All() {
		if !e.Mode.IsRegular() {
			continue
		}
		w := written{"/" + e.Path, e.Mode.Perm(), e.Content}
		if w.path == k3sconf.ConfigPath {
			config = &w
			continue
		}
		now, err := o.get(ctx, n.Name, w.path)
		if err != nil {
			return unequal{}, err
		}
		out.note(w, now)
	}
	if err := o.token(ctx, v, n, &out); err != nil {
		return unequal{}, err
	}
	if config != nil {
		out.note(*config, have)
	}
	return out, nil
}

// get reads a file; nil when it is not there.
func (o Options) get(ctx context.Context, node, path string) ([]byte, error) {
	data, err := o.Node(node).Get(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if data == nil && err == nil {
		data = []byte{}
	}
	return data, err
}

func (u *unequal) note(w written, now []byte) {
	switch {
	case now == nil:
		u.changes = append(u.changes, create(w.path, "it is not there"))
	case !bytes.Equal(now, w.content):
		u.changes = append(u.changes, sequence.Change{Verb: sequence.Alter, What: w.path, Why: "it differs from the profile"})
	default:
		return
	}
	u.files = append(u.files, w)
}

// kept is how a member's configuration says that it came into the cluster. That
// counted once, so another server than today's would name is no difference, and
// neither is the right to start the cluster that it used: it is taken out by a step of
// its own.
func kept(c cluster.Cluster, n cluster.Node, have []byte, otherwise k3sconf.Join) k3sconf.Join {
	if facts.ConfigInit(have) && n.Role == cluster.RoleServer {
		return k3sconf.Join{Init: true}
	}
	for _, s := range c.Servers() {
		j := k3sconf.Join{Server: k3sconf.URL(s.Address())}
		if want, err := k3sconf.Render(c, n, j); err == nil && sharesLine(have, want, j.Server) {
			return j
		}
	}
	return otherwise
}

// sharesLine reports whether both texts have the same line with a word in it.
func sharesLine(a, b []byte, word string) bool {
	for line := range strings.Lines(string(a)) {
		if strings.HasPrefix(line, "server:") && strings.Contains(line, word) && strings.Contains(string(b), line) {
			return true
		}
	}
	return false
}

// token compares the node's token. Who joins gets it with the hash of the cluster's
// CA, and so talks to no other cluster.
func (o Options) token(ctx context.Context, v view, n cluster.Node, u *unequal) error {
	secret, err := o.Token()
	if err != nil {
		return err
	}
	bare := []byte(secret + "\n")
	full := bare
	if hash := v.decision.TokenCA; hash != "" && v.decision.Init != n.Name {
		full = []byte("K10" + hash + "::server:" + secret + "\n")
	}
	sum, err := o.Node(n.Name).Run(ctx, "if [ -e "+k3sconf.TokenPath+" ]; then sha256sum <"+k3sconf.TokenPath+"; fi", nil)
	if err != nil {
		return err
	}
	has, _, _ := strings.Cut(strings.TrimSpace(string(sum)), " ")
	known := v.seen[n.Name].Facts.K3s
	settled := known.Knows() || known.Joined
	switch {
	case has == digest.Of(full).Hex(), settled && has == digest.Of(bare).Hex():
		return nil
	case has != "" && settled:
		return refuse("put the token of this cluster into the secrets; changing it is done on a server, with k3s token rotate",
			"the token in the secrets is not the one that %s runs with", n.Name)
	}
	change := create(k3sconf.TokenPath, "it is not there")
	if has != "" {
		change = sequence.Change{Verb: sequence.Alter, What: k3sconf.TokenPath, Why: "it is another token"}
	}
	u.changes = append(u.changes, change)
	u.files = append(u.files, written{k3sconf.TokenPath, 0o600, full})
	return nil
}

// write writes the files, one after the other; config.yaml comes last, because it is
// what lets k3s start at the next boot.
func (o Options) write(ctx context.Context, node string, files []written, tell sequence.Tell) error {
	for _, w := range files {
		tell("writing " + w.path)
		if err := o.Node(node).Put(ctx, w.path, w.perm, w.content); err != nil {
			return fmt.Errorf("on %s: %w", node, err)
		}
	}
	return nil
}
