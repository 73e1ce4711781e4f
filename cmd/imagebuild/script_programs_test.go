package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/imagebuild/usb"
	"github.com/slipway/slipway/internal/imagebuild/usb/usbtest"
	"github.com/slipway/slipway/internal/imagebuild/verify/buildtest"
)

// scriptPrograms are the programs that scripts can run beside those of the host.
func scriptPrograms() map[string]func() {
	return map[string]func(){
		"imagebuild":            main,
		"makebuild":             func() { must(makeBuild(os.Args[1], os.Args[2:])) },
		"flip":                  func() { must(flipByte(os.Args[1], os.Args[2])) },
		"machine":               func() { must(makeMachine(os.Args[1:])) },
		"imagebuild-on-machine": imagebuildOnMachine,
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// makeBuild writes a small complete build into dir, and the public key that
// signed it into dir.pub; of an environment, cluster and substrate when given.
func makeBuild(dir string, of []string) error {
	spec := buildtest.Default()
	if len(of) == 3 {
		spec.Environment, spec.Cluster, spec.Substrate = of[0], of[1], of[2]
	}
	if err := buildtest.Build(context.Background(), dir, spec); err != nil {
		return err
	}
	line, err := artifact.FormatKey(buildtest.PublicKey(), "")
	if err != nil {
		return err
	}
	return os.WriteFile(dir+".pub", []byte(line), 0o644)
}

func flipByte(file, at string) error {
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return err
	}
	return buildtest.Flip(filepath.Dir(file), filepath.Base(file), n)
}

// makeMachine makes a false machine in $MACHINE with a stick of 1 GiB, or of
// -size=MiB, the file $MACHINE/stick; further arguments mount its first partition.
func makeMachine(mounts []string) error {
	dir, size := os.Getenv("MACHINE"), int64(1<<30)
	if len(mounts) > 0 && strings.HasPrefix(mounts[0], "-size=") {
		n, err := strconv.ParseInt(strings.TrimPrefix(mounts[0], "-size="), 10, 32)
		if err != nil {
			return err
		}
		size, mounts = n<<20, mounts[1:]
	}
	m, err := usbtest.New(dir)
	if err != nil {
		return err
	}
	if err := m.Typical(size); err != nil {
		return err
	}
	for _, point := range mounts {
		if err := m.Mount("8:17", point, "/dev/sdb1"); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, "stick"))
	if err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Close()
}

// imagebuildOnMachine is imagebuild with the devices of the false machine.
func imagebuildOnMachine() {
	dir := os.Getenv("MACHINE")
	host := usbtest.Machine{Dir: dir}.Host()
	host.Open = func(usb.Device) (usb.Target, error) { return usbtest.Open(filepath.Join(dir, "stick")) }
	os.Exit(runOn(host, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
