// Package record is what nodeinit leaves behind for the running system: how this
// boot came about.
package record

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/renameio/v2"
)

// Path is where the record of this boot lies. /run is a tmpfs, so a record never
// outlives its boot.
const Path = "/run/slipway/boot.json"

// Boot describes one boot.
type Boot struct {
	Slot           string `json:"slot"`
	RootHash       string `json:"rootHash"`
	Disk           string `json:"disk"`   // device path
	Serial         string `json:"serial"` // of the disk, may be empty
	DiskSize       int64  `json:"diskSize"`
	ESP            string `json:"esp"` // device path
	SlotDevice     string `json:"slotDevice"`
	State          string `json:"state"` // device path
	StateSize      int64  `json:"stateSize"`
	FirstBoot      bool   `json:"firstBoot"`      // the state file system was made in this boot
	CountsTries    bool   `json:"countsTries"`    // the boot entry was not blessed yet
	WholeSlotRead  bool   `json:"wholeSlotRead"`  // the slot was read through before it was trusted
	SlotChanged    bool   `json:"slotChanged"`    // another image than at the last boot
	SeedFromDisk   bool   `json:"seedFromDisk"`   // the seed came from the CIDATA partition of the boot disk
	ShellAllowed   bool   `json:"shellAllowed"`   // slipway.shell=1
	RebootAfter    int    `json:"rebootAfter"`    // seconds
	ReachedSystemd int64  `json:"reachedSystemd"` // milliseconds after the kernel started
	Steps          []Step `json:"steps"`
}

// Step is one step of the boot and how long it took.
type Step struct {
	Name         string `json:"name"`
	Milliseconds int64  `json:"milliseconds"`
}

// Write writes the record.
func Write(path string, b Boot) error {
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the boot record: %w", err)
	}
	if err := renameio.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the boot record: %w", err)
	}
	return nil
}

// Read reads the record of this boot.
func Read(path string) (Boot, error) {
	var b Boot
	data, err := os.ReadFile(path)
	if err != nil {
		return b, fmt.Errorf("reading the boot record: %w", err)
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("reading the boot record %s: %w", path, err)
	}
	return b, nil
}
