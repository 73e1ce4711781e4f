// Package artifact is the contract between who builds an image and who writes or
// boots it: the index of a finished build, with every file, every chunk of the
// disk image and their digests. The index is signed; everything else is bound to
// it by digest.
package artifact

import "github.com/slipway/slipway/internal/digest"

// Format is the version of the index that this code writes and reads.
const Format = "slipway-index/1"

// File names of the index and its signature inside the output directory.
const (
	IndexName     = "index.json"
	SignatureName = "index.json.sig"
)

// Index describes one finished build. Its JSON encoding is canonical: two builds
// of the same plan give the same bytes.
type Index struct {
	Format      string        `json:"format"`
	Name        string        `json:"name"`        // base name of the outputs, "slipway-lab"
	Environment string        `json:"environment"` // from the profile
	Cluster     string        `json:"cluster"`     // from the profile
	Substrate   string        `json:"substrate"`   // vm or metal
	Plan        digest.Digest `json:"plan"`        // digest of the plan that was built
	Epoch       int64         `json:"epoch"`       // SOURCE_DATE_EPOCH of the build, seconds
	Files       []File        `json:"files"`       // sorted by name
	Disk        Disk          `json:"disk"`
	Slot        Slot          `json:"slot"`
}

// Role says what a file of a build is for.
type Role string

// The roles of files.
const (
	RoleDiskRaw    Role = "disk-raw"   // sparse raw disk image
	RoleDiskZstd   Role = "disk-zstd"  // the same, zstd, one frame a chunk
	RoleDiskQcow2  Role = "disk-qcow2" // the same, qcow2
	RoleKernel     Role = "kernel"
	RoleInitrd     Role = "initrd"    // boots a node
	RoleInstaller  Role = "installer" // initramfs that images a machine: with network drivers
	RoleSeed       Role = "seed"      // one NoCloud document of one node
	RoleIPXE       Role = "ipxe"
	RoleSBOM       Role = "sbom"
	RoleProvenance Role = "provenance"
	RolePlan       Role = "plan"
	RoleSlot       Role = "slot"    // what a slot holds: squashfs and verity tree
	RolePayload    Role = "payload" // what bootstrap installs: a chart, manifests, the list of container images
)

// File is one file of a build. Name is its path under the output directory, with
// forward slashes. Digest is the SHA-256 of the file's bytes, as sha256sum prints
// it, except for the raw disk image: that one is mostly holes, which are not worth
// hashing, and its digest is the TreeDigest of its chunks.
type File struct {
	Name   string        `json:"name"`
	Role   Role          `json:"role"`
	Node   string        `json:"node,omitempty"` // for seeds
	Size   int64         `json:"size"`           // bytes
	Digest digest.Digest `json:"digest"`
}

// Disk describes the disk image: how it is partitioned and its content, chunk by chunk.
type Disk struct {
	Size       int64       `json:"size"`       // bytes
	SectorSize int         `json:"sectorSize"` // logical, bytes
	GUID       string      `json:"guid"`
	Partitions []Partition `json:"partitions"`
	ChunkSize  int64       `json:"chunkSize"` // bytes of raw image a chunk covers; the last may be shorter
	Chunks     []Chunk     `json:"chunks"`    // in order, covering the whole image
}

// Partition is one entry of the image's GPT. Offsets and sizes are in bytes.
type Partition struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Type   string `json:"type"` // GUID, upper case
	GUID   string `json:"guid"` // upper case
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
}

// Chunk is a piece of the disk image that can be fetched, verified and written on
// its own. A hole is all zeros; it has no raw digest and no need to be fetched,
// but still a frame in the compressed file, so that the file as a whole is a
// plain zstd stream of the image.
type Chunk struct {
	Raw    digest.Digest `json:"raw,omitzero"`    // of the uncompressed bytes
	Hole   bool          `json:"hole,omitempty"`  // the uncompressed bytes are all zero
	Offset int64         `json:"offset"`          // of the frame in the compressed file
	Size   int64         `json:"size"`            // of the frame, bytes
	Packed digest.Digest `json:"packed,omitzero"` // of the frame
}

// Slot describes what slot A holds.
type Slot struct {
	Size     int64         `json:"size"`     // of the slot partition, bytes
	Content  int64         `json:"content"`  // bytes used: squashfs, padding, verity superblock and tree
	Squashfs int64         `json:"squashfs"` // bytes of squashfs, padded to 4096; the verity superblock follows
	Digest   digest.Digest `json:"digest"`   // of the content
	RootHash string        `json:"rootHash"` // dm-verity root hash, hex
	Kernel   string        `json:"kernel"`   // kernel release, as uname -r prints it
}
