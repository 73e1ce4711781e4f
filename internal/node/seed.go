package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/home"
)

// seedDir is where cloud-init looks first. It lies on a tmpfs, as does everything
// that cloud-init keeps.
const seedDir = "/var/lib/cloud/seed/nocloud"

// seedLimit bounds one document, in bytes.
const seedLimit = 8 << 20

// noSearch keeps cloud-init from searching other disks for a seed once the boot
// disk has one: a stick of another node that was left plugged in must not rename
// this one.
const noSearch = "datasource:\n  NoCloud:\n    fs_label: null\n"

// fetchSeed copies the seed from the boot disk to where cloud-init finds it. A disk
// without a seed is no error here: cloud-init then searches for a medium labelled
// CIDATA itself, and a node that finds none says so when it is asked.
func (b *boot) fetchSeed() error {
	p, ok := b.disk.Find(disklayout.NameSeed)
	if !ok {
		return nil
	}
	if err := unix.Mount(p.Path, mountDir, "vfat", unix.MS_RDONLY, ""); err != nil {
		b.consoles.Warn("the seed partition %s cannot be read: %v", p.Path, err)
		return nil
	}
	defer func() { _ = unix.Unmount(mountDir, 0) }()
	if _, err := os.Stat(filepath.Join(mountDir, "meta-data")); err != nil {
		b.consoles.Log("no seed on %s, leaving the search to cloud-init", p.Path)
		return nil
	}
	if err := copySeed(mountDir, filepath.Join(rootDir, seedDir)); err != nil {
		return fmt.Errorf("copying the seed from %s: %w", p.Path, err)
	}
	b.record.SeedFromDisk = true
	if err := copyDocument(filepath.Join(mountDir, machine.HomeName), home.Path); err != nil {
		b.consoles.Warn("nobody is told when this node is ready: %v", err)
	}
	conf := filepath.Join(rootDir, "etc/cloud/cloud.cfg.d/99-slipway-seed.cfg")
	if err := os.WriteFile(conf, []byte(noSearch), 0o644); err != nil {
		return fmt.Errorf("configuring cloud-init: %w", err)
	}
	return nil
}

func copySeed(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"meta-data", "user-data", "vendor-data", "network-config"} {
		if err := copyDocument(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyDocument(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, seedLimit+1))
	if err != nil {
		return err
	}
	if len(data) > seedLimit {
		return fmt.Errorf("%s is larger than %d MiB", filepath.Base(from), seedLimit>>20)
	}
	return os.WriteFile(to, data, 0o600)
}
