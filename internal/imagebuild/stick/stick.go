// Package stick makes installer sticks: what the network gives an armed machine, on
// a USB stick. Firmware starts the installer from the first partition; the second
// is a bundle with the signed build, and a ticket and a seed for each node that may
// be installed from it.
//
// A stick is the same one-shot right as an armed node: its tickets expire, name the
// image and the disks, and are used up by the receipt that the installer leaves.
package stick

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/imagebuild/chunk"
	"github.com/slipway/slipway/internal/imagebuild/diskimage"
	"github.com/slipway/slipway/internal/imagebuild/usb"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install/bundle"
)

// Options says what a stick installs.
type Options struct {
	Dir     string            // of the build
	Key     ed25519.PublicKey // that must have signed it
	Cluster cluster.Cluster   // of the profile
	Nodes   []string          // to be installed; none means all. A single one may be any machine that is no other node.
	Order   Order
	Temp    string // directory in which the stick is put together; "" is that of the system
	Now     time.Time
	Random  io.Reader // of tickets
}

// Order is what the person who writes the stick confirms.
type Order struct {
	Valid     time.Duration    // until the tickets expire
	Overwrite []string         // serials or WWNs of disks whose foreign data may be destroyed
	Sanitize  machine.Sanitize // of the system disk, before it is written
	Data      cluster.Policy   // of all data disks, in place of the profile's
}

// Stick is an installer stick, to be written to a device or a file.
type Stick struct {
	Nodes []machine.Ticket // in the order of the profile

	opt    Options
	image  *usb.Image
	spec   bundle.Spec
	layout disklayout.Layout
	work   string // directory with the stick while it is put together
	lock   *os.File
}

// Open checks everything that can be refused without reading the image. Close the stick.
func Open(o Options) (*Stick, error) {
	image, err := usb.OpenImage(o.Dir, o.Key)
	if err != nil {
		return nil, err
	}
	s := &Stick{opt: o, image: image}
	for _, step := range []func() error{s.suits, s.order, s.layOut} {
		if err := step(); err != nil {
			return nil, errors.Join(err, image.Close())
		}
	}
	return s, nil
}

// Close removes what was put together.
func (s *Stick) Close() error {
	err := s.image.Close()
	if s.work != "" {
		err = errors.Join(err, os.RemoveAll(s.work), s.lock.Close())
	}
	return err
}

// Index is the index of the build.
func (s *Stick) Index() artifact.Index { return s.image.Index }

// largest is the size of the largest file that FAT can hold, bytes.
const largest = 1<<32 - 1

// suits refuses a build and a profile from which no node may or can be installed.
func (s *Stick) suits() error {
	x, c := s.image.Index, s.opt.Cluster
	if x.Environment != c.Environment || x.Cluster != c.Name {
		err := fmt.Errorf("the build is of %s (cluster %s), the profile is %s (cluster %s)", x.Environment, x.Cluster, c.Environment, c.Name)
		return exit.With(exit.Usage, diag.WithHint(err, "name with -p the profile that the build was made from"))
	}
	if c.Status != cluster.StatusActive {
		err := fmt.Errorf("the profile is %s: no stick is made that writes its machines", c.Status)
		return exit.With(exit.Refused, diag.WithHint(err, "set status: active in the profile when they may be written"))
	}
	for _, role := range []artifact.Role{artifact.RoleKernel, artifact.RoleInstaller} {
		if _, ok := x.One(role); !ok {
			err := fmt.Errorf("the build has no file of the role %s: nothing can be installed from it", role)
			return exit.With(exit.Usage, diag.WithHint(err, "build it again with this version of imagebuild"))
		}
	}
	if image, _ := x.One(artifact.RoleDiskZstd); image.Size > largest {
		return diag.WithHint(fmt.Errorf("the compressed image has %d bytes, a stick can carry at most %d", image.Size, int64(largest)), "install over the network: pxed serve")
	}
	return nil
}

// reserve is room for the documents of the nodes, bytes. FAT itself takes another
// thirty-second part at most.
const reserve = 64 << 20

func (s *Stick) layOut() error {
	size := func(role artifact.Role) int64 {
		f, _ := s.image.Index.One(role)
		return f.Size
	}
	// Both are FAT32, which has a smallest size as well.
	content := size(artifact.RoleDiskZstd)
	content = max(disklayout.MinESP, content+content/32+reserve)
	esp := max(disklayout.MinESP, size(artifact.RoleKernel)+size(artifact.RoleInstaller)+reserve)
	var err error
	s.layout, err = disklayout.NewStick(s.Nodes[0].ID, esp, content)
	return err
}

// Disk implements usb.Content.
func (s *Stick) Disk() artifact.Disk {
	d := artifact.Disk{Size: s.layout.Size, SectorSize: diskimage.SectorSize, GUID: s.layout.GUID, ChunkSize: chunk.Size}
	for _, p := range s.layout.Partitions {
		d.Partitions = append(d.Partitions, artifact.Partition(p))
	}
	return d
}

func (s *Stick) path(name string) string { return filepath.Join(s.work, name) }

// source is where a file of the build lies.
func (s *Stick) source(name string) string {
	return filepath.Join(s.opt.Dir, filepath.FromSlash(name))
}

// partition is one of the layout's, which are all there.
func (s *Stick) partition(name string) disklayout.Partition {
	p, _ := s.layout.Find(name)
	return p
}

// Describe writes what the stick will do to whom.
func (s *Stick) Describe(w io.Writer) {
	for _, t := range s.Nodes {
		fmt.Fprintf(w, "installs %s until %s, over the disk with %s\n", t.Node, t.Expires.Format(time.RFC3339), selector(t.System))
		for _, d := range t.Data {
			fmt.Fprintf(w, "  data disk %s (%s): %s\n", d.Name, selector(d.Disk), d.Policy)
		}
	}
	if o := s.opt.Order; len(o.Overwrite) > 0 {
		fmt.Fprintf(w, "  foreign data may be destroyed on %v\n", o.Overwrite)
	}
	if s.spec.Nodes[0].Machine.Any {
		fmt.Fprintf(w, "  on the machine of %s, and on any that is no other node of the profile\n", s.Nodes[0].Node)
	}
}

// selector is a disk selector in words.
func selector(c cluster.Selector) string {
	var out string
	for _, kv := range [][2]string{{"serial", c.Serial}, {"WWN", c.WWN}, {"model", c.Model}, {"at least", sizeText(c.MinSize)}, {"at most", sizeText(c.MaxSize)}} {
		if kv[1] == "" {
			continue
		}
		if out != "" {
			out += ", "
		}
		out += kv[0] + " " + kv[1]
	}
	return out
}

func sizeText(n cluster.Size) string {
	if n == 0 {
		return ""
	}
	return n.String()
}

// chosen are the nodes that are to be installed, in the order of the profile.
func (s *Stick) chosen() ([]cluster.Node, error) {
	var out []cluster.Node
	var names []string
	for _, n := range s.opt.Cluster.Nodes {
		names = append(names, n.Name)
		if len(s.opt.Nodes) == 0 || slices.Contains(s.opt.Nodes, n.Name) {
			out = append(out, n)
		}
	}
	for _, want := range s.opt.Nodes {
		if !slices.Contains(names, want) {
			return nil, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("the profile has no node %q", want), fmt.Sprintf("its nodes are %v", names)))
		}
	}
	return out, nil
}

// String is what the stick installs, in a few words.
func (s *Stick) String() string {
	var names []string
	for _, t := range s.Nodes {
		names = append(names, t.Node)
	}
	x := s.image.Index
	return fmt.Sprintf("%s with %s, plan %s", strings.Join(names, ", "), x.Name, x.Plan.Short())
}
