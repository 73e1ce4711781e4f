// Package imagebuild is the story of a build: resolve everything once into a
// plan, fetch, make the parts, put them together, sign, publish.
package imagebuild

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway/slipway/images"
	"github.com/slipway/slipway/internal/bootentry"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/plan"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/seed"
)

// squashLevel is the zstd level of the slots' squashfs. Measured on a 345 MB tree:
// level 3 takes 2.6 s and gives 144 MB, 9 takes 4.8 s and 137 MB, 15 takes 29 s
// and 131 MB.
const squashLevel = 9

// Request names what to build.
type Request struct {
	Profile  string // path of the overlay
	Lock     string // path of the lock; "" means the one beside the overlay
	Node     string // node whose seed the image carries; "" leaves CIDATA empty
	NodeInit string // path of the static nodeinit binary; "" means beside this program
}

// Resolved is a plan with what it was resolved from.
type Resolved struct {
	Plan    plan.Plan
	Cluster cluster.Cluster
	Lock    *pin.Lock

	request  Request
	overlay  fstree.Tree
	nodeinit string
	seeds    []nodeSeed
}

type nodeSeed struct {
	node string
	tree fstree.Tree
}

// Resolve reads the profile, its lock and the built-in data, and decides the
// build. It writes nothing.
func Resolve(req Request) (*Resolved, error) {
	p, err := profilefile.Load(req.Profile)
	if err != nil {
		return nil, err
	}
	r := &Resolved{Cluster: p.Cluster, request: req}
	for _, step := range []func() error{r.readLock, r.readBuiltin, r.readNodeInit, r.makeSeeds, r.makePlan} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Resolved) pinHint() string { return "run imagebuild pin -p " + r.request.Profile }

func (r *Resolved) readLock() error {
	if r.request.Lock == "" {
		r.request.Lock = pin.Path(r.request.Profile)
	}
	data, err := os.ReadFile(r.request.Lock)
	if errors.Is(err, fs.ErrNotExist) {
		return exit.With(exit.Usage, diag.WithHint(fmt.Errorf("%s is not there: the inputs of %s are not pinned", r.request.Lock, r.request.Profile), r.pinHint()))
	}
	if err != nil {
		return fmt.Errorf("reading lock: %w", err)
	}
	if r.Lock, err = pin.Parse(r.request.Lock, data); err != nil {
		return err
	}
	builtin, err := images.Packages(string(r.Cluster.Substrate))
	if err != nil {
		return err
	}
	want := pin.Want(&r.Cluster, builtin, images.KernelPackage(string(r.Cluster.Substrate)))
	return exit.With(exit.Usage, r.Lock.Covers(want, r.request.Profile))
}

func (r *Resolved) readBuiltin() (err error) {
	r.overlay, err = images.Overlay()
	return err
}

func (r *Resolved) readNodeInit() error {
	r.nodeinit = r.request.NodeInit
	if r.nodeinit != "" {
		return static(r.nodeinit)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("looking for nodeinit: %w", err)
	}
	r.nodeinit = filepath.Join(filepath.Dir(self), "nodeinit")
	if _, err := os.Stat(r.nodeinit); err != nil {
		return diag.WithHint(fmt.Errorf("nodeinit, which goes into the image, is not beside %s", self), "run make build, or name it with --nodeinit")
	}
	return static(r.nodeinit)
}

// static refuses a program that wants an interpreter: the initramfs has no libraries,
// and a kernel that cannot start its first program says no more than that.
func static(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return nil // not there, or no such program; said where it is read
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return diag.WithHint(fmt.Errorf("%s is linked to libraries, and nothing in the initramfs has them", program), "build it without cgo: make build does")
		}
	}
	return nil
}

func (r *Resolved) makeSeeds() error {
	for _, n := range r.Cluster.Nodes {
		docs, err := seed.For(r.Cluster, n)
		if err != nil {
			return err
		}
		tree, err := docs.Tree()
		if err != nil {
			return err
		}
		r.seeds = append(r.seeds, nodeSeed{node: n.Name, tree: tree})
	}
	if r.request.Node == "" || slices.ContainsFunc(r.seeds, func(s nodeSeed) bool { return s.node == r.request.Node }) {
		return nil
	}
	return exit.With(exit.Usage, diag.WithHint(fmt.Errorf("%s has no node %q", r.request.Profile, r.request.Node), "its nodes are "+r.nodeNames()))
}

func (r *Resolved) nodeNames() string {
	var names []string
	for _, s := range r.seeds {
		names = append(names, s.node)
	}
	return strings.Join(names, ", ")
}

func (r *Resolved) makePlan() error {
	c := r.Cluster
	p := plan.Plan{
		Format: plan.Format, Name: "slipway-" + c.Environment, Environment: c.Environment, Cluster: c.Name,
		Substrate: string(c.Substrate), Status: string(c.Status), Epoch: r.Lock.Epoch().Unix(),
	}
	init, err := fileDigest(r.nodeinit)
	if err != nil {
		return fmt.Errorf("reading nodeinit: %w", err)
	}
	drop, err := images.Drop()
	if err != nil {
		return err
	}
	p.Rootfs = plan.Rootfs{Suite: c.Debian.Suite, Drop: drop, Overlay: r.overlay.Digest(), Node: init, Level: squashLevel}
	for _, d := range r.Lock.Set(pin.SetRootfs).Packages {
		p.Rootfs.Packages = append(p.Rootfs.Packages, deb(d))
	}
	modules, err := images.InitrdModules(string(c.Substrate))
	if err != nil {
		return err
	}
	install, err := planInstall(string(c.Substrate))
	if err != nil {
		return err
	}
	p.Kernel = plan.Kernel{Package: deb(r.Lock.Set(pin.SetKernel).Packages[0]), Modules: modules, Install: install, CommandLine: bootentry.Options(c.System)}
	if p.Payload, err = r.planPayload(); err != nil {
		return err
	}
	p.IPXE = deb(r.Lock.Set(pin.SetNetboot).Packages[0])
	p.Disk = plan.Disk{ESPSize: int64(c.Image.ESPSize), SlotSize: max(0, int64(c.Image.SlotSize)), Seed: r.request.Node}
	for _, s := range r.seeds {
		p.Seeds = append(p.Seeds, planSeed(s))
	}
	r.Plan = p
	return nil
}

func deb(p pin.Package) plan.Deb {
	return plan.Deb{Name: p.Name, Version: p.Version, Arch: p.Arch, Size: p.Size, Digest: p.Digest}
}

func planInstall(substrate string) (plan.Install, error) {
	modules, err := images.InstallModules(substrate)
	if err != nil {
		return plan.Install{}, err
	}
	firmware, err := images.InstallFirmware(substrate)
	p := plan.Install{Modules: modules, Firmware: []string{}}
	for _, f := range firmware {
		p.Firmware = append(p.Firmware, f.Package+": "+f.Dir)
	}
	return p, err
}

func planSeed(s nodeSeed) plan.Seed {
	out := plan.Seed{Node: s.node}
	for e := range s.tree.All() {
		if e.Mode.IsRegular() {
			out.Documents = append(out.Documents, plan.Document{Name: e.Path, Size: int64(len(e.Content)), Digest: digest.Of(e.Content)})
		}
	}
	return out
}
