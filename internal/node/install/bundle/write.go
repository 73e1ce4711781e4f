package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/machine"
)

// Node is one node that can be installed from a bundle.
type Node struct {
	Ticket  machine.Ticket // its Index and Key are those of the build
	Machine Machine
	Seed    machine.Seed
}

// Size is how many bytes a bundle of the build in dir takes, with generous room
// for the rest.
func Size(dir string) (int64, error) {
	index, err := readIndex(dir)
	if err != nil {
		return 0, err
	}
	image, _ := index.One(artifact.RoleDiskZstd) // Decode refuses an index without one
	const rest = 16 << 20
	return image.Size + rest, nil
}

// Write makes a bundle in the empty directory to, from the build in dir. It is the
// caller who has verified the build; whoever installs from it does so again.
func Write(to, dir string, nodes []Node) error {
	if len(nodes) == 0 {
		return errors.New("writing the bundle: no node")
	}
	index, err := readIndex(dir)
	if err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	image, _ := index.One(artifact.RoleDiskZstd)
	for _, name := range []string{artifact.IndexName, artifact.SignatureName, image.Name} {
		if err := copyFile(filepath.Join(to, buildDir, filepath.FromSlash(name)), filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
	}
	for _, n := range nodes {
		if err := n.write(to); err != nil {
			return fmt.Errorf("writing the bundle: node %s: %w", n.Ticket.Node, err)
		}
	}
	return nil
}

func readIndex(dir string) (artifact.Index, error) {
	data, err := os.ReadFile(filepath.Join(dir, artifact.IndexName))
	if err != nil {
		return artifact.Index{}, err
	}
	return artifact.Decode(data)
}

func (n Node) write(to string) error {
	if err := n.Ticket.Check(); err != nil {
		return err
	}
	if len(n.Machine.MACs) == 0 && machine.Junk(n.Machine.Serial) != "" {
		return errors.New("nothing says which machine it is")
	}
	dir := filepath.Join(to, nodesDir, n.Ticket.Node)
	if err := os.MkdirAll(filepath.Join(dir, seedDir), 0o755); err != nil {
		return err
	}
	s := &Source{node: n.Ticket.Node}
	var err error
	if s.root, err = os.OpenRoot(to); err != nil {
		return err
	}
	defer s.root.Close()
	for name, text := range n.Seed {
		if !fs.ValidPath(name) {
			return fmt.Errorf("seed document %q: not a name", name)
		}
		if err := os.WriteFile(filepath.Join(dir, seedDir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(s.write(s.at(ticketFile), n.Ticket), s.write(s.at(machineFile), n.Machine))
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
