package artifact

import "unicode/utf16"

func checkDisk(p *problems, d Disk) {
	sector := int64(d.SectorSize)
	if sector != 512 && sector != 4096 {
		p.addf("disk.sectorSize is %d, want 512 or 4096", sector)
		return
	}
	if d.Size <= 0 || d.Size > maxSize || d.Size%sector != 0 {
		p.addf("disk.size %d is not a positive multiple of the sector size", d.Size)
		return
	}
	if !guidForm.MatchString(d.GUID) {
		p.addf("disk.guid %q is not an upper-case GUID", d.GUID)
	}
	checkPartitions(p, d)
	checkChunks(p, d)
}

func checkPartitions(p *problems, d Disk) {
	const maxEntries = 128 // of a GPT as everybody writes it
	if len(d.Partitions) == 0 || len(d.Partitions) > maxEntries {
		p.addf("disk has %d partitions, want 1 to %d", len(d.Partitions), maxEntries)
		return
	}
	sector := int64(d.SectorSize)
	free := (gptSectors + 1) * sector // end of what is taken so far
	last := 0
	guids := map[string]bool{d.GUID: true}
	for i, q := range d.Partitions {
		if q.Number <= last || q.Number > maxEntries {
			p.addf("partitions[%d]: number %d does not come after %d", i, q.Number, last)
		}
		last = q.Number
		if n := len(utf16.Encode([]rune(q.Name))); !segmentForm.MatchString(q.Name) || n > 36 {
			p.addf("partitions[%d]: name %q is not allowed (UEFI has room for 36 characters)", i, q.Name)
		}
		if !guidForm.MatchString(q.Type) || !guidForm.MatchString(q.GUID) {
			p.addf("partitions[%d] (%s): type and guid must be upper-case GUIDs", i, q.Name)
		}
		if guids[q.GUID] {
			p.addf("partitions[%d] (%s): guid %s is used twice", i, q.Name, q.GUID)
		}
		guids[q.GUID] = true
		end := d.Size - gptSectors*sector
		switch {
		case q.Offset < 0 || q.Size <= 0 || q.Offset > maxSize || q.Size > maxSize || q.Offset%sector != 0 || q.Size%sector != 0:
			p.addf("partitions[%d] (%s): offset %d and size %d must be positive multiples of the sector size", i, q.Name, q.Offset, q.Size)
			continue
		case q.Offset < free:
			p.addf("partitions[%d] (%s): starts at %d, inside what comes before it (until %d)", i, q.Name, q.Offset, free)
		case q.Offset+q.Size > end:
			p.addf("partitions[%d] (%s): ends at %d, after the last usable byte %d", i, q.Name, q.Offset+q.Size, end)
		}
		free = q.Offset + q.Size
	}
}

func checkChunks(p *problems, d Disk) {
	if d.ChunkSize <= 0 || d.ChunkSize > MaxChunkSize || d.ChunkSize%int64(d.SectorSize) != 0 {
		p.addf("disk.chunkSize %d is not a multiple of the sector size up to %d", d.ChunkSize, MaxChunkSize)
		return
	}
	if len(d.Chunks) > MaxChunks {
		p.addf("%d chunks, more than %d", len(d.Chunks), MaxChunks)
		return
	}
	if want := (d.Size + d.ChunkSize - 1) / d.ChunkSize; int64(len(d.Chunks)) != want {
		p.addf("%d chunks of %d bytes do not cover a disk of %d bytes: want %d", len(d.Chunks), d.ChunkSize, d.Size, want)
	}
	var at int64
	for i, c := range d.Chunks {
		if c.Offset != at {
			p.addf("chunks[%d]: frame starts at %d, the one before ends at %d", i, c.Offset, at)
		}
		if c.Size <= 0 || c.Size > MaxFrame(d.ChunkSize) {
			p.addf("chunks[%d]: frame of %d bytes, want 1 to %d", i, c.Size, MaxFrame(d.ChunkSize))
			continue
		}
		at += c.Size
		if c.Packed.IsZero() {
			p.addf("chunks[%d]: frame has no digest", i)
		}
		if c.Hole == !c.Raw.IsZero() {
			p.addf("chunks[%d]: either a hole or a raw digest, not both and not neither", i)
		}
	}
}

// MaxFrame is the largest frame that a chunk of n bytes may become, in bytes:
// incompressible input grows by three bytes for every 128 KiB block and a header.
func MaxFrame(n int64) int64 { return n + n>>8 + 1024 }

func checkSlot(p *problems, s Slot) {
	const block = 4096 // of dm-verity, and what a squashfs is padded to
	if s.Size <= 0 || s.Size > maxSize || s.Content <= 0 || s.Content > s.Size {
		p.addf("slot: content of %d bytes does not fit into a slot of %d", s.Content, s.Size)
	}
	if s.Squashfs <= 0 || s.Squashfs%block != 0 || s.Squashfs >= s.Content {
		p.addf("slot: squashfs of %d bytes must be a multiple of %d and leave room for the verity tree", s.Squashfs, block)
	}
	if s.Digest.IsZero() {
		p.addf("slot: no digest")
	}
	if !rootForm.MatchString(s.RootHash) {
		p.addf("slot: root hash %q is not 64 lower-case hex digits", s.RootHash)
	}
	if !kernelForm.MatchString(s.Kernel) {
		p.addf("slot: kernel release %q is not allowed", s.Kernel)
	}
}

// checkSums holds the files against the disk and the slot they carry.
func checkSums(p *problems, x Index) {
	for i, f := range x.Files {
		switch f.Role {
		case RoleDiskRaw:
			if f.Size != x.Disk.Size {
				p.addf("files[%d] (%s): %d bytes, but the disk has %d", i, f.Name, f.Size, x.Disk.Size)
			}
			if f.Digest != TreeDigest(x.Disk.Size, x.Disk.ChunkSize, x.Disk.Chunks) {
				p.addf("files[%d] (%s): digest is not the tree digest of the chunks", i, f.Name)
			}
		case RoleDiskZstd:
			if n := x.Disk.PackedSize(); f.Size != n {
				p.addf("files[%d] (%s): %d bytes, but the frames add up to %d", i, f.Name, f.Size, n)
			}
		case RoleSlot:
			if f.Size != x.Slot.Content || f.Digest != x.Slot.Digest {
				p.addf("files[%d] (%s): size and digest are not those of the slot's content", i, f.Name)
			}
		}
	}
}
