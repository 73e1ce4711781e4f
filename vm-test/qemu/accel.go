package qemu

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// Accel is how QEMU runs the guest's processors.
type Accel string

// The accelerators.
const (
	KVM Accel = "kvm"
	TCG Accel = "tcg" // translation in software: works everywhere, about ten times slower
)

// AccelVariable overrides the choice of ChooseAccel.
const AccelVariable = "SLIPWAY_ACCEL"

// probeDeadline is how long the probe guest may take. A kernel without a root
// file system panics within two seconds even under TCG.
const probeDeadline = 10 * time.Second

func (a Accel) args() []string {
	if a == KVM {
		return []string{"-accel", "kvm", "-cpu", "max"}
	}
	return []string{"-accel", "tcg,thread=multi", "-cpu", "max"}
}

// ChooseAccel decides between KVM and TCG and says why. That /dev/kvm exists, or
// even opens and makes a machine, is no proof: there are hosts on which every
// guest then hangs. So a kernel must have booted under KVM to its panic for want
// of a root file system. dir is for the files of that guest.
func ChooseAccel(ctx context.Context, kernel, dir string) (Accel, string, error) {
	switch forced := Accel(os.Getenv(AccelVariable)); forced {
	case "":
	case KVM, TCG:
		return forced, AccelVariable + " says so", nil
	default:
		return "", "", fmt.Errorf("%s=%s: must be kvm or tcg", AccelVariable, forced)
	}
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return TCG, fmt.Sprintf("no KVM here: %v", err), nil
	}
	f.Close()
	if err := probe(ctx, KVM, kernel, dir); err != nil {
		reason, _, _ := strings.Cut(err.Error(), "; it ends in:")
		return TCG, "/dev/kvm is there, but a probe guest did not boot: " + reason, ctx.Err()
	}
	return KVM, "a probe guest booted under KVM", nil
}

// probe boots a bare kernel and waits for its panic.
func probe(ctx context.Context, a Accel, kernel, dir string) error {
	v, err := Start(ctx, Config{
		Name: "probe-" + string(a), Dir: dir, Accel: a, CPUs: 1, Memory: 256, Firmware: BIOS,
		Kernel: kernel, Append: "console=ttyS0 panic=-1", NoReboot: true,
	})
	if err != nil {
		return err
	}
	defer v.Close()
	_, err = v.Serial[0].Expect(ctx, `Kernel panic - not syncing`, probeDeadline)
	return err
}
