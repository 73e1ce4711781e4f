// Package bundle is an install's source on a stick: a directory that holds a build
// and, for each node that may be installed from it, a ticket and a seed. The
// receipt is left there as well, and a node whose receipt says that it is installed
// is not installed from this stick again.
//
//	build/index.json, index.json.sig     as imagebuild made them
//	build/<name>.raw.zst                 the compressed disk image of the index
//	nodes/<node>/machine.json            Machine: which machine is this node
//	nodes/<node>/ticket.json             machine.Ticket; absent: it is not installed from here
//	nodes/<node>/seed/<document>         the NoCloud documents
//	nodes/<node>/started.json            written before a machine is installed
//	nodes/<node>/receipt.json            written when it is, or has failed
package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
)

// Label is the name of the partition that holds a bundle, in the GPT, or of the
// file system where that has room for it.
const Label = disklayout.NameBundle

// Names inside a bundle.
const (
	buildDir    = "build"
	nodesDir    = "nodes"
	ticketFile  = "ticket.json"
	machineFile = "machine.json"
	seedDir     = "seed"
	startedFile = "started.json"
	receiptFile = "receipt.json"
)

// maxSmall bounds every file but the image, bytes.
const maxSmall = 16 << 20

// Source is a bundle as an install sees it. It is for one machine.
type Source struct {
	root *os.Root
	now  func() time.Time
	node string // known after Report
}

var _ install.Source = (*Source)(nil)

// Open opens the bundle in a directory. Close it.
func Open(dir string, now func() time.Time) (*Source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the bundle: %w", err)
	}
	return &Source{root: root, now: now}, nil
}

// Close closes the bundle.
func (s *Source) Close() error { return s.root.Close() }

// Report implements install.Orders: it finds the node that this machine becomes.
// A stick has no clock.
func (s *Source) Report(_ context.Context, r machine.Report) (machine.Reply, time.Time, error) {
	node, message, err := s.find(r)
	if err != nil {
		return machine.Reply{}, time.Time{}, fmt.Errorf("%w: %w", install.ErrAnswer, err)
	}
	s.node = node
	return machine.Reply{Action: machine.ActionInstall, Message: message}, time.Time{}, nil
}

func (s *Source) at(elements ...string) string {
	return path.Join(append([]string{nodesDir, s.node}, elements...)...)
}

// Ticket implements install.Orders. It is refused when it was used, and when the
// stick cannot be written: a receipt could then not be kept.
func (s *Source) Ticket(context.Context) (machine.Ticket, error) {
	var t machine.Ticket
	if err := s.read(s.at(ticketFile), &t); err != nil {
		return t, fmt.Errorf("%w: %w", install.ErrAnswer, err)
	}
	var old machine.Receipt
	err := s.read(s.at(receiptFile), &old)
	switch {
	case err == nil && old.Ticket == t.ID && old.Error == "":
		return t, diag.WithHint(fmt.Errorf("%w: node %s was installed with it on %s", install.ErrTicket, old.Node, old.Finished.UTC().Format(time.RFC3339)),
			"take out the stick; to install the node once more, write the stick again")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return t, fmt.Errorf("%w: %w", install.ErrAnswer, err)
	}
	if err := s.write(s.at(startedFile), map[string]time.Time{"started": s.now()}); err != nil {
		return t, diag.WithHint(fmt.Errorf("%w: the stick cannot be written, so that no receipt could be kept: %w", install.ErrAnswer, err),
			"some sticks have a switch against writing")
	}
	return t, nil
}

// Seed implements install.Orders.
func (s *Source) Seed(context.Context) (machine.Seed, error) {
	entries, err := fs.ReadDir(s.root.FS(), s.at(seedDir))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", install.ErrAnswer, err)
	}
	seed := machine.Seed{}
	for _, e := range entries {
		data, err := s.small(s.at(seedDir, e.Name()))
		if err != nil {
			return nil, err
		}
		seed[e.Name()] = string(data)
	}
	return seed, nil
}

// Index implements install.Build.
func (s *Source) Index(context.Context) (index, signature []byte, err error) {
	if index, err = s.small(path.Join(buildDir, artifact.IndexName)); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", install.ErrAnswer, err)
	}
	if signature, err = s.small(path.Join(buildDir, artifact.SignatureName)); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", install.ErrAnswer, err)
	}
	return index, signature, nil
}

// Open implements install.Build.
func (s *Source) Open(_ context.Context, name string, offset int64) (io.ReadCloser, error) {
	f, err := s.root.Open(path.Join(buildDir, name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", install.ErrAnswer, err)
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Progress implements install.Desk: nobody but the screen wants to know.
func (s *Source) Progress(context.Context, machine.Progress) error { return nil }

// Receipt implements install.Desk.
func (s *Source) Receipt(_ context.Context, r machine.Receipt) error {
	if s.node == "" {
		return fmt.Errorf("%w: the stick has nothing for this machine", install.ErrAnswer)
	}
	return s.write(s.at(receiptFile), r)
}

func (s *Source) small(name string) ([]byte, error) {
	f, err := s.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err == nil && len(data) > maxSmall {
		err = fmt.Errorf("%s has more than %d bytes", name, maxSmall)
	}
	return data, err
}

func (s *Source) read(name string, v any) error {
	data, err := s.small(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// write puts a document in place in one step, and waits until it is on the stick:
// people pull sticks.
func (s *Source) write(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	tmp := name + ".new"
	f, err := s.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := s.root.Rename(tmp, name); err != nil {
		return err
	}
	return s.sync(path.Dir(name))
}

func (s *Source) sync(dir string) error {
	d, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
