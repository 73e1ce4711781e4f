package install

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/diskselect"
	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/disk"
	"github.com/slipway/slipway/internal/node/install/cidata"
)

func (r *run) selectDisks(context.Context) error {
	image := r.index.Disk
	if !boots(image, r.report.Firmware.Mode) {
		return refuse("this machine was started by a BIOS, and the image boots by UEFI only: switch the firmware to UEFI (legacy or CSM off)")
	}
	choice, err := diskselect.Select(r.report.Disks, diskselect.OrderOf(r.ticket, image.Size+disk.MinState, image.SectorSize))
	var no *diskselect.Error
	if errors.As(err, &no) {
		return &Refused{Reasons: append([]string{no.Reason}, no.Reasons()...)}
	}
	if err != nil {
		return refuse("%v", err)
	}
	r.choice, r.receipt.Disk = choice, choice.System
	r.env.Screen.Say("the system goes to " + diskselect.Describe(choice.System))
	for _, d := range choice.Data {
		line := fmt.Sprintf("data disk %s: %s", d.Name, d.Action)
		if d.Action != diskselect.Absent {
			line = fmt.Sprintf("data disk %s is %s: to be %s", d.Name, diskselect.Describe(d.Disk), d.Action)
		}
		if d.Note != "" {
			line += " (" + d.Note + ")"
		}
		r.env.Screen.Say(line)
	}
	return nil
}

// biosBoot is the type of the partition that a boot loader for BIOS lies in.
const biosBoot = "21686148-6449-6E6F-744E-656564454649"

// boots reports whether a machine that was started in a mode will start the image
// in the same one.
func boots(image artifact.Disk, mode string) bool {
	return mode != "bios" || slices.ContainsFunc(image.Partitions, func(p artifact.Partition) bool { return p.Type == biosBoot })
}

// fetchSeed fetches the seed and makes its file system, which covers the whole
// partition: nothing of an older seed survives.
func (r *run) fetchSeed(ctx context.Context) error {
	docs, err := retry(ctx, r.env, "fetching the seed", r.source.Seed)
	if err != nil {
		return err
	}
	p, ok := r.index.Disk.Partition(disklayout.NameSeed)
	if !ok {
		return refuse("the image has no partition %s for the seed", disklayout.NameSeed)
	}
	tree, content, err := seedTree(docs)
	if err != nil {
		return refuse("the seed: %v", err)
	}
	if err := r.addHome(content); err != nil {
		return err
	}
	var serial [4]byte
	if _, err := r.env.Random.Read(serial[:]); err != nil {
		return fmt.Errorf("making a serial number: %w", err)
	}
	image, err := cidata.Image(content, p.Size, r.index.Disk.SectorSize, binary.LittleEndian.Uint32(serial[:]))
	if err != nil {
		return refuse("%v", err)
	}
	r.seed, r.receipt.Seed = patch{p.Offset, image}, tree.Digest()
	return nil
}

// addHome puts beside the seed whom the node shall tell that it is ready.
func (r *run) addHome(content map[string][]byte) error {
	if r.env.Home == "" {
		return nil
	}
	data, err := json.Marshal(machine.Home{Server: r.env.Home, Ticket: r.ticket.ID})
	if err != nil {
		return fmt.Errorf("making %s: %w", machine.HomeName, err)
	}
	if _, taken := content[machine.HomeName]; taken {
		return refuse("the seed has a document of the reserved name %s", machine.HomeName)
	}
	content[machine.HomeName] = append(data, '\n')
	return nil
}

// seedTree is the seed as whoever made it counts it.
func seedTree(docs machine.Seed) (fstree.Tree, map[string][]byte, error) {
	var entries []fstree.Entry
	content := map[string][]byte{}
	for name, text := range docs {
		entries = append(entries, fstree.File(name, 0o644, []byte(text)))
		content[name] = []byte(text)
	}
	for _, name := range []string{"meta-data", "user-data"} {
		if docs[name] == "" {
			return fstree.Tree{}, nil, fmt.Errorf("it has no %s", name)
		}
	}
	tree, err := fstree.New(entries...)
	return tree, content, err
}
