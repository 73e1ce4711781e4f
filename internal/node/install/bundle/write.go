package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/machine"
)

// Spec is what a bundle is made of.
type Spec struct {
	Build  string             // directory of the build
	Nodes  []Node             // that are installed
	Others map[string]Machine // the profile's other nodes: machines that must not become one of these
}

// Node is one node that can be installed from a bundle.
type Node struct {
	Ticket  machine.Ticket // its Index and Key are those of the build
	Machine Machine
	Seed    machine.Seed
}

// File is a file of a bundle: its content, or where it is a copy of.
type File struct {
	Path    string // slash-separated
	Content []byte
	Source  string // "" when Content is meant
}

// Files lists the files of a bundle. It is the caller who has verified the build;
// whoever installs from it does so again.
func Files(s Spec) ([]File, error) {
	out, err := s.files()
	if err != nil {
		return nil, fmt.Errorf("making the bundle: %w", err)
	}
	return out, nil
}

func (s Spec) files() ([]File, error) {
	if len(s.Nodes) == 0 {
		return nil, errors.New("no node")
	}
	index, err := readIndex(s.Build)
	if err != nil {
		return nil, err
	}
	image, _ := index.One(artifact.RoleDiskZstd) // Decode refuses an index without one
	var out []File
	for _, name := range []string{artifact.IndexName, artifact.SignatureName, image.Name} {
		out = append(out, File{Path: path.Join(buildDir, name), Source: filepath.Join(s.Build, filepath.FromSlash(name))})
	}
	for _, n := range s.Nodes {
		files, err := n.files(len(s.Nodes) == 1)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Ticket.Node, err)
		}
		out = append(out, files...)
	}
	for name, m := range s.Others {
		f, err := document(path.Join(nodesDir, name, machineFile), m)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func readIndex(dir string) (artifact.Index, error) {
	data, err := os.ReadFile(filepath.Join(dir, artifact.IndexName))
	if err != nil {
		return artifact.Index{}, err
	}
	return artifact.Decode(data)
}

func (n Node) files(only bool) ([]File, error) {
	if err := n.Ticket.Check(); err != nil {
		return nil, err
	}
	switch {
	case n.Machine.Any && !only:
		return nil, errors.New("any machine could become it, and the bundle has other nodes")
	case len(n.Machine.MACs) == 0 && machine.Junk(n.Machine.Serial) != "" && !n.Machine.Any:
		return nil, errors.New("nothing says which machine it is")
	}
	dir := path.Join(nodesDir, n.Ticket.Node)
	ticket, err := document(path.Join(dir, ticketFile), n.Ticket)
	if err != nil {
		return nil, err
	}
	who, err := document(path.Join(dir, machineFile), n.Machine)
	if err != nil {
		return nil, err
	}
	out := []File{ticket, who}
	for name, text := range n.Seed {
		if !fs.ValidPath(name) {
			return nil, fmt.Errorf("seed document %q: not a name", name)
		}
		out = append(out, File{Path: path.Join(dir, seedDir, name), Content: []byte(text)})
	}
	return out, nil
}

func document(name string, v any) (File, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return File{Path: name, Content: append(data, '\n')}, err
}

// Write makes a bundle in the empty directory to.
func Write(to string, s Spec) error {
	files, err := Files(s)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := f.write(filepath.Join(to, filepath.FromSlash(f.Path))); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
	}
	return nil
}

func (f File) write(to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if f.Source == "" {
		return os.WriteFile(to, f.Content, 0o644)
	}
	in, err := os.Open(f.Source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
