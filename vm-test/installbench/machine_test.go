package installbench

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
	"github.com/slipway/slipway/internal/node/install/blockdev"
	"github.com/slipway/slipway/internal/node/install/httpsource"
)

// machineVariable makes the test program a machine that boots from the network; it
// holds pxed's URL.
const machineVariable = "SLIPWAY_INSTALLBENCH_MACHINE"

// asMachine does what iPXE does and then, as internal/node/installer, an install.
func asMachine() {
	debug.SetMemoryLimit(96 << 20) // as the installer
	if err := boot(context.Background(), os.Getenv(machineVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func boot(ctx context.Context, server string) error {
	ticket, err := script(ctx, server)
	if err != nil {
		return err
	}
	source, err := httpsource.New(httpsource.Options{
		Server: server, Ticket: ticket, Client: &http.Client{Transport: httpsource.Transport()}, Stall: 30 * time.Second, Small: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	size, err := strconv.ParseInt(os.Getenv("BENCH_SIZE"), 10, 64)
	if err != nil {
		return err
	}
	report := machine.Report{
		Format: machine.ReportFormat, Identity: machine.Identity{Serial: os.Getenv("BENCH_SERIAL")}, Firmware: machine.Firmware{Mode: "uefi"},
		Disks: []machine.Disk{{Name: "vda", Serial: os.Getenv("BENCH_SERIAL"), Transport: "virtio", Size: size, Sector: 512}},
		NICs:  []machine.NIC{{Name: "eth0", MAC: os.Getenv("BENCH_MAC"), Link: true, Boot: true}}, Clock: time.Now(),
	}
	env := install.Env{
		Screen: silent{}, Clock: clock{}, Random: rand.Reader, Patience: install.DefaultPatience(), Home: server,
		Sleep: func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }, Workers: min(runtime.NumCPU(), 4),
	}
	result := install.Run(ctx, env, source, disks{}, report)
	if result.Err == nil && !(result.Receipt.ReadBack && result.Acknowledged) {
		return fmt.Errorf("not installed: %v", result.Summary())
	}
	return result.Err
}

// script asks for the boot script, and finds the ticket in it.
func script(ctx context.Context, server string) (string, error) {
	q := url.Values{"mac": {os.Getenv("BENCH_MAC")}, "serial": {os.Getenv("BENCH_SERIAL")}, "firmware": {"uefi"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+machine.PathBoot+"?"+q.Encode(), nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`slipway\.ticket=([0-9a-f]{64})`).FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("no installer was offered:\n%s", text)
	}
	return string(found[1]), nil
}

// disks is the one disk of the machine.
type disks struct{}

func (disks) Open(machine.Disk) (install.Disk, error) {
	d, err := blockdev.Open(os.Getenv("BENCH_DISK"))
	if err != nil || os.Getenv("BENCH_ZEROS") == "" {
		return d, err
	}
	return written{d}, nil
}

func (disks) Sanitize(context.Context, install.Disk, machine.Disk, machine.Sanitize) (string, error) {
	return "", nil // not asked for
}

// written is a disk that has no quick way to make a range zero.
type written struct{ *blockdev.Device }

func (w written) Zero(offset, length int64) error {
	zeros := make([]byte, min(length, 4<<20))
	for length > 0 {
		n, err := w.WriteAt(zeros[:min(length, int64(len(zeros)))], offset)
		if err != nil {
			return err
		}
		offset, length = offset+int64(n), length-int64(n)
	}
	return nil
}

type silent struct{}

func (silent) Say(string)    {}
func (silent) Status(string) {}

type clock struct{}

func (clock) Now() time.Time      { return time.Now() }
func (clock) Set(time.Time) error { return nil }
