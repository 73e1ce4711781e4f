package artifact

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/digest"
)

// sample is a small index that is right in every respect.
func sample() Index {
	const guid = "00000000-0000-8000-8000-00000000000"
	linux := "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
	x := Index{
		Format: Format, Name: "slipway-lab", Environment: "lab", Cluster: "lab", Substrate: "vm",
		Plan: digest.Of([]byte("plan")), Epoch: 1700000000,
		Disk: Disk{
			Size: 10 << 20, SectorSize: 512, GUID: guid + "0", ChunkSize: 4 << 20,
			Partitions: []Partition{
				{Number: 1, Name: "slipway-esp", Type: "C12A7328-F81F-11D2-BA4B-00A0C93EC93B", GUID: guid + "1", Offset: 2 << 20, Size: 1 << 20},
				{Number: 2, Name: "slipway-a", Type: linux, GUID: guid + "2", Offset: 3 << 20, Size: 4 << 20},
			},
			Chunks: []Chunk{
				{Raw: digest.Of([]byte("a")), Offset: 0, Size: 100, Packed: digest.Of([]byte("pa"))},
				{Hole: true, Offset: 100, Size: 20, Packed: digest.Of([]byte("pb"))},
				{Raw: digest.Of([]byte("c")), Offset: 120, Size: 30, Packed: digest.Of([]byte("pc"))},
			},
		},
		Slot: Slot{
			Size: 4 << 20, Content: 12288, Squashfs: 8192, Digest: digest.Of([]byte("slot")),
			RootHash: strings.Repeat("ab", 32), Kernel: "6.12.117-cloud-amd64",
		},
	}
	x.Files = []File{
		{Name: "disk.raw", Role: RoleDiskRaw, Size: x.Disk.Size, Digest: TreeDigest(x.Disk.Size, x.Disk.ChunkSize, x.Disk.Chunks)},
		{Name: "disk.raw.zst", Role: RoleDiskZstd, Size: 150, Digest: digest.Of([]byte("zst"))},
		{Name: "seeds/n1/user-data", Role: RoleSeed, Node: "n1", Size: 5, Digest: digest.Of([]byte("seed"))},
		{Name: "slot.squashfs", Role: RoleSlot, Size: 12288, Digest: x.Slot.Digest},
	}
	return x
}

func encoded(t testing.TB, x Index) []byte {
	t.Helper()
	data, err := encode(x)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
