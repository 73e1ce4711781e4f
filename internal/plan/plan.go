// Package plan is everything that a build will make, as one value: resolved once
// from the profile, the lock and the built-in data, before anything is written.
//
// Two runs on the same inputs give the same plan, and the same plan gives the same
// image: its digest names the build, and the digests of its parts are the keys
// under which the parts are cached.
package plan

import (
	"encoding/json"
	"fmt"

	"github.com/slipway/slipway/internal/digest"
)

// Format is the version of the plan. It changes when the same inputs would give
// different bytes because the builder changed.
const Format = "slipway-plan/5"

// Plan is one build. All fields enter its digest.
type Plan struct {
	Format      string  `json:"format"`
	Name        string  `json:"name"` // base name of the outputs
	Environment string  `json:"environment"`
	Cluster     string  `json:"cluster"`
	Substrate   string  `json:"substrate"`
	Status      string  `json:"status"`
	Epoch       int64   `json:"epoch"` // SOURCE_DATE_EPOCH, seconds
	Rootfs      Rootfs  `json:"rootfs"`
	Kernel      Kernel  `json:"kernel"`
	Payload     Payload `json:"payload"`
	Disk        Disk    `json:"disk"`
	Seeds       []Seed  `json:"seeds"`
	IPXE        Deb     `json:"ipxe"`
}

// Deb is one pinned Debian package.
type Deb struct {
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Arch    string        `json:"arch"`
	Size    int64         `json:"size"` // bytes of the .deb
	Digest  digest.Digest `json:"digest"`
}

// Rootfs is the root file system: packages, what is left out of them, and what is
// laid over them.
type Rootfs struct {
	Suite    string        `json:"suite"`
	Packages []Deb         `json:"packages"` // sorted by name
	Drop     []string      `json:"drop"`     // patterns of paths left out
	Overlay  digest.Digest `json:"overlay"`  // of the built-in file tree
	Node     digest.Digest `json:"node"`     // of the nodeinit binary, also /usr/bin/slipway-node
	Level    int           `json:"level"`    // zstd level of the squashfs
}

// Payload is what the cluster starts with: k3s, charts, manifests, container images.
type Payload struct {
	Inputs []Input       `json:"inputs"` // sorted by name
	Absent []Absent      `json:"absent"` // sorted by name
	Values digest.Digest `json:"values"` // of the charts' values, which decide what images are needed
}

// Input is one pinned input of the payload.
type Input struct {
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Kind    string        `json:"kind"` // as in the lock
	Size    int64         `json:"size"` // bytes
	Digest  digest.Digest `json:"digest"`
}

// Absent is an input that the profile wants and the lock could not fix: the image is
// made without it.
type Absent struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Why     string `json:"why"`
}

// Has returns the input of that name.
func (p Payload) Has(name string) (Input, bool) {
	for _, in := range p.Inputs {
		if in.Name == name {
			return in, true
		}
	}
	return Input{}, false
}

// Kernel is the kernel, its initramfs and its command line.
type Kernel struct {
	Package     Deb      `json:"package"`
	Modules     []string `json:"modules"`     // of the initramfs
	Install     Install  `json:"install"`     // what the installer's initramfs has beyond that
	CommandLine []string `json:"commandLine"` // without slot and root hash, which the build adds
}

// Install is what the installer's initramfs carries to reach the network.
type Install struct {
	Modules  []string `json:"modules"`
	Firmware []string `json:"firmware"` // directories of the root file system's packages
}

// Disk is how the image is laid out, in bytes. SlotSize 0 means that the build
// computes it from the content.
type Disk struct {
	ESPSize  int64  `json:"espSize"`
	SlotSize int64  `json:"slotSize"`
	Seed     string `json:"seed,omitempty"` // node whose seed the CIDATA partition holds
}

// Seed is the NoCloud documents of one node.
type Seed struct {
	Node      string     `json:"node"`
	Documents []Document `json:"documents"` // sorted by name
}

// Document is one NoCloud document.
type Document struct {
	Name   string        `json:"name"`
	Size   int64         `json:"size"` // bytes
	Digest digest.Digest `json:"digest"`
}

// Digest names the plan.
func (p Plan) Digest() digest.Digest { return digestOf(p) }

// RootfsKey names the tar of the installed packages.
func (p Plan) RootfsKey() digest.Digest {
	return digestOf(struct {
		Stage    string
		Epoch    int64
		Suite    string
		Packages []Deb
	}{"rootfs/1", p.Epoch, p.Rootfs.Suite, p.Rootfs.Packages})
}

// KernelKey names the unpacked kernel package.
func (p Plan) KernelKey() digest.Digest {
	return digestOf(struct {
		Stage   string
		Package Deb
	}{"kernel/1", p.Kernel.Package})
}

// SlotKey names the content of a slot.
func (p Plan) SlotKey() digest.Digest {
	return digestOf(struct {
		Stage        string
		Base, Kernel digest.Digest
		Rootfs       Rootfs
		Payload      digest.Digest
	}{"slot/5", p.RootfsKey(), p.KernelKey(), p.Rootfs, p.PayloadKey()})
}

// PayloadKey names the charts, manifests and images that are made of the inputs. The
// values do not enter it: what they decide is not in a slot.
func (p Plan) PayloadKey() digest.Digest {
	return digestOf(struct {
		Stage  string
		Inputs []Input
	}{"payload/1", p.Payload.Inputs})
}

// InitrdKey names the initramfs.
func (p Plan) InitrdKey() digest.Digest {
	return digestOf(struct {
		Stage   string
		Kernel  digest.Digest
		Modules []string
		Node    digest.Digest
	}{"initrd/1", p.KernelKey(), p.Kernel.Modules, p.Rootfs.Node})
}

// InstallerKey names the installer's initramfs.
func (p Plan) InstallerKey() digest.Digest {
	return digestOf(struct {
		Stage          string
		Initrd, Rootfs digest.Digest
		Install        Install
	}{"installer/1", p.InitrdKey(), p.RootfsKey(), p.Kernel.Install})
}

// Encode is the canonical JSON form.
func (p Plan) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding plan: %w", err)
	}
	return append(b, '\n'), nil
}

// digestOf hashes the JSON form of v. The types above hold only strings, numbers
// and digests, which always encode.
func digestOf(v any) digest.Digest {
	b, err := json.Marshal(v)
	if err != nil {
		panic("plan: " + err.Error())
	}
	return digest.Of(b)
}
