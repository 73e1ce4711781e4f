package artifact

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/digest"
)

func TestValidateNamesWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*Index){
		`substrate is "cloud"`:                        func(x *Index) { x.Substrate = "cloud" },
		`name "a/b" is not a name`:                    func(x *Index) { x.Name = "a/b" },
		"plan has no digest":                          func(x *Index) { x.Plan = digest.Digest{} },
		"epoch -1":                                    func(x *Index) { x.Epoch = -1 },
		`"../etc/passwd" leaves the directory`:        func(x *Index) { x.Files[0].Name = "../etc/passwd" },
		`"a/../../b" leaves`:                          func(x *Index) { x.Files[0].Name = "a/../../b" },
		`"/etc/passwd" is absolute`:                   func(x *Index) { x.Files[0].Name = "/etc/passwd" },
		`"a//b" has a part "" that`:                   func(x *Index) { x.Files[0].Name = "a//b" },
		`"./a" has a part "."`:                        func(x *Index) { x.Files[0].Name = "./a" },
		`"a\\b" has a part`:                           func(x *Index) { x.Files[0].Name = `a\b` },
		`has a part "a\nb"`:                           func(x *Index) { x.Files[0].Name = "a\nb" },
		"belongs to the index itself":                 func(x *Index) { x.Files[0].Name = IndexName },
		"must be sorted and unique":                   func(x *Index) { x.Files[1].Name = "a" },
		`"disk.raw/x" lies inside "disk.raw"`:         func(x *Index) { x.Files[1].Name = "disk.raw/x" },
		`unknown role "exe"`:                          func(x *Index) { x.Files[3].Role = "exe" },
		"2 files have the role disk-raw":              func(x *Index) { x.Files[3].Role = RoleDiskRaw },
		"no file has the role disk-zstd":              func(x *Index) { x.Files[1].Role = RoleIPXE },
		"size -1 is out of range":                     func(x *Index) { x.Files[2].Size = -1 },
		"(seeds/n1/user-data): no digest":             func(x *Index) { x.Files[2].Digest = digest.Digest{} },
		"a seed names its node":                       func(x *Index) { x.Files[2].Node = "" },
		"151 bytes, but the frames add up to 150":     func(x *Index) { x.Files[1].Size = 151 },
		"digest is not the tree digest":               func(x *Index) { x.Files[0].Digest = x.Plan },
		"but the disk has 10485760":                   func(x *Index) { x.Files[0].Size++ },
		"are not those of the slot's content":         func(x *Index) { x.Files[3].Size++ },
		"sectorSize is 520":                           func(x *Index) { x.Disk.SectorSize = 520 },
		"disk.size 10485761 is not":                   func(x *Index) { x.Disk.Size++ },
		`disk.guid "x"`:                               func(x *Index) { x.Disk.GUID = "x" },
		"number 1 does not come after 1":              func(x *Index) { x.Disk.Partitions[1].Number = 1 },
		"is used twice":                               func(x *Index) { x.Disk.Partitions[1].GUID = x.Disk.Partitions[0].GUID },
		"starts at 2097664, inside what comes before": func(x *Index) { x.Disk.Partitions[1].Offset = 2<<20 + 512 },
		"starts at 512, inside what comes before":     func(x *Index) { x.Disk.Partitions[0].Offset = 512 },
		"after the last usable byte 10468864":         func(x *Index) { x.Disk.Partitions[1].Size = 7 << 20 },
		"offset 2097153 and size":                     func(x *Index) { x.Disk.Partitions[0].Offset++ },
		"disk.chunkSize 0":                            func(x *Index) { x.Disk.ChunkSize = 0 },
		"2 chunks of 4194304 bytes do not cover":      func(x *Index) { x.Disk.Chunks = x.Disk.Chunks[:2] },
		"chunks[2]: frame starts at 119":              func(x *Index) { x.Disk.Chunks[2].Offset = 119 },
		"chunks[1]: frame starts at 120":              func(x *Index) { c := x.Disk.Chunks; c[1], c[2] = c[2], c[1] },
		"chunks[1]: frame of 0 bytes":                 func(x *Index) { x.Disk.Chunks[1].Size = 0 },
		"chunks[1]: frame of 1073741824 bytes":        func(x *Index) { x.Disk.Chunks[1].Size = 1 << 30 },
		"chunks[0]: frame has no digest":              func(x *Index) { x.Disk.Chunks[0].Packed = digest.Digest{} },
		"chunks[0]: either a hole or a raw digest":    func(x *Index) { x.Disk.Chunks[0].Hole = true },
		"chunks[1]: either a hole or a raw digest":    func(x *Index) { x.Disk.Chunks[1].Hole = false },
		"does not fit into a slot":                    func(x *Index) { x.Slot.Content = 5 << 20 },
		"squashfs of 8193 bytes":                      func(x *Index) { x.Slot.Squashfs++ },
		"slot: root hash":                             func(x *Index) { x.Slot.RootHash = strings.ToUpper(x.Slot.RootHash) },
		`kernel release "../x"`:                       func(x *Index) { x.Slot.Kernel = "../x" },
		`node "-n" is not a name`:                     func(x *Index) { x.Files[2].Node = "-n" },
		"disk has 0 partitions":                       func(x *Index) { x.Disk.Partitions = nil },
		"has room for 36 characters":                  func(x *Index) { x.Disk.Partitions[0].Name = strings.Repeat("x", 37) },
		"65537 chunks, more than 65536":               func(x *Index) { x.Disk.Chunks = make([]Chunk, MaxChunks+1) },
		"and 47 more problems":                        func(x *Index) { x.Disk.Size, x.Disk.Chunks = 64<<22, make([]Chunk, 64) },
	} {
		t.Run(want, func(t *testing.T) {
			x := sample()
			change(&x)
			err := x.Validate()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
			if _, err := Encode(x); err == nil {
				t.Error("Encode accepts what Validate refuses")
			}
		})
	}
}

func TestDiskNamesPlaces(t *testing.T) {
	d := sample().Disk
	for offset, want := range map[int64]string{
		0:               "protective MBR",
		512:             "primary GPT",
		1 << 20:         "unpartitioned space",
		2<<20 + 7:       "partition 1 (slipway-esp), byte 7",
		7<<20 - 1:       "partition 2 (slipway-a), byte 4194303",
		7 << 20:         "unpartitioned space",
		10<<20 - 1:      "backup GPT",
		10<<20 - 33*512: "backup GPT",
	} {
		if got := d.At(offset); got != want {
			t.Errorf("At(%d) = %q, want %q", offset, got, want)
		}
	}
}

func TestTreeDigestBindsEveryPart(t *testing.T) {
	d := sample().Disk
	seen := map[digest.Digest]string{TreeDigest(d.Size, d.ChunkSize, d.Chunks): "the original"}
	for name, got := range map[string]digest.Digest{
		"size":       TreeDigest(d.Size+512, d.ChunkSize, d.Chunks),
		"chunk size": TreeDigest(d.Size, d.ChunkSize/2, d.Chunks),
		"fewer":      TreeDigest(d.Size, d.ChunkSize, d.Chunks[:2]),
		"order":      TreeDigest(d.Size, d.ChunkSize, []Chunk{d.Chunks[2], d.Chunks[1], d.Chunks[0]}),
		"hole":       TreeDigest(d.Size, d.ChunkSize, []Chunk{d.Chunks[1], d.Chunks[1], d.Chunks[2]}),
	} {
		if seen[got] != "" {
			t.Errorf("%s: same digest as %s", name, seen[got])
		}
		seen[got] = name
	}
}
