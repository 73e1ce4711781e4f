package qemu

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// start switches on a machine without disks under the real firmware.
func start(t *testing.T, c Config) *VM {
	t.Helper()
	c.Dir, c.Accel, c.CPUs, c.Memory = t.TempDir(), TCG, 1, 256
	v, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func TestFirmwareSpeaksAndPlugIsPulled(t *testing.T) {
	v := start(t, Config{Name: "empty", NICs: []NIC{{MAC: "52:54:00:00:00:01", SSH: netip.MustParseAddr("10.0.2.15")}}})
	if len(v.ssh) != 1 || !strings.HasPrefix(v.ssh[0], "127.0.0.1:") {
		t.Fatalf("forwarded ports %q, want one on 127.0.0.1", v.ssh)
	}
	conn, err := net.Dial("tcp", v.ssh[0])
	if err != nil {
		t.Fatalf("the forwarded port does not listen: %v", err)
	}
	conn.Close()
	if _, err := v.Serial[0].Expect(t.Context(), `BdsDxe|PXE over IPv4`, time.Minute); err != nil {
		t.Fatal(err)
	}
	var status struct{ Status string }
	if err := v.Execute(t.Context(), "query-status", nil, &status); err != nil || status.Status != "running" {
		t.Fatalf("query-status: %+v, %v", status, err)
	}
	if err := v.PullPlug(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestNVRAMIsPrivateAndKept(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept.nvram")
	if err := os.WriteFile(kept, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Config{Name: "a", Dir: dir, NVRAM: kept}
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(kept); err != nil || string(got) != "kept" {
		t.Errorf("kept variables became %q, %v", got, err)
	}
	c, err := Config{Name: "b", Dir: dir}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	template, err := os.ReadFile(ovmfVars)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "b.nvram")); err != nil || !slices.Equal(got, template) {
		t.Errorf("new variables are not the template: %v", err)
	}
}

func TestExpectFailsWithTheConsole(t *testing.T) {
	v := start(t, Config{Name: "mute"})
	if _, err := v.Serial[0].Expect(t.Context(), `BdsDxe`, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Serial[1].Expect(t.Context(), `never`, 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "never") {
		t.Errorf("error %v does not name what was waited for", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Serial[0].Expect(ctx, `never`, time.Minute); err == nil || !strings.Contains(err.Error(), "BdsDxe") {
		t.Errorf("error %v does not show the console", err)
	}
	v.Close()
	if _, err := v.Serial[0].Expect(t.Context(), `never`, time.Minute); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("error %v does not say that the machine is off", err)
	}
}

func TestStartSaysWhatQEMUSaid(t *testing.T) {
	_, err := Start(t.Context(), Config{Name: "bad", Dir: t.TempDir(), Accel: TCG, Disks: []Disk{{Path: "/nonexistent", Format: "raw"}}})
	if err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("error %v does not carry QEMU's message", err)
	}
}

func TestConsoleIsCleanedAndConsumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serial")
	text := "\x1b[2J\x1b[01;01Hone\r\n\x1b[0;32m  OK  \x1b[0m two\r\none more\r\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	off := make(chan struct{})
	c := &Console{path: path, vm: &VM{exited: off}}
	for _, want := range []string{"one", "OK {3}two", "one (?P<rest>.*)"} {
		if _, err := c.Expect(t.Context(), want, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Since(); got != "\n" {
		t.Errorf("left over: %q", got)
	}
	if got := c.Text(); got != "one\n  OK   two\none more\n" {
		t.Errorf("text %q", got)
	}
}

func TestParseForwards(t *testing.T) {
	text := "Hub -1 (net0):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n" +
		"  TCP[HOST_FORWARD]   8       127.0.0.1 35995       10.0.2.15    22     0     0\r\n" +
		"  UDP[HOST_FORWARD]   9       127.0.0.1 35996       10.0.2.15    53     0     0\r\n"
	if got := parseForwards(text); !slices.Equal(got, []string{"127.0.0.1:35995"}) {
		t.Errorf("got %q", got)
	}
}

func TestChooseAccelObeysTheVariable(t *testing.T) {
	t.Setenv(AccelVariable, "tcg")
	if a, why, err := ChooseAccel(t.Context(), "", ""); a != TCG || !strings.Contains(why, AccelVariable) || err != nil {
		t.Errorf("got %v, %q, %v", a, why, err)
	}
	t.Setenv(AccelVariable, "xen")
	if _, _, err := ChooseAccel(t.Context(), "", ""); err == nil {
		t.Error("an unknown accelerator is accepted")
	}
}
