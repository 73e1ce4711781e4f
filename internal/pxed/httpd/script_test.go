package httpd

import (
	"strings"
	"testing"
)

// A UEFI client that must boot its disk gets a script whose last command fails;
// BIOS has no such rule.
func TestBootDiskEndsAsTheFirmwareNeedsIt(t *testing.T) {
	for _, c := range []struct {
		platform Platform
		local    LocalBoot
		end      string
		has, not string
	}{
		{PlatformEFI, LocalExit, "\nexit 1\n", "", "sanboot"},
		{PlatformEFI, LocalSanboot, "\nexit 1\n", "", "sanboot"},
		{PlatformBIOS, LocalExit, "\nexit\n", "", "exit 1"},
		{PlatformBIOS, LocalSanboot, "||\nexit\n", "sanboot --no-describe --drive 0x80", "exit 1"},
		{"", LocalExit, ":efi\nexit 1\n", "iseq ${platform} efi && goto efi", "sanboot"},
		{"", LocalSanboot, ":efi\nexit 1\n", "sanboot", "x86"},
	} {
		for name, s := range map[string]string{
			"disk": bootDisk(c.platform, c.local, "installed"), "off": powerOff(c.platform, c.local, "bye"),
			"failed start": start(Kernel{Base: "http://h"}, c.platform, c.local, "go"),
		} {
			if !strings.HasPrefix(s, "#!ipxe\n") || strings.Count(s, "#!ipxe") != 1 {
				t.Errorf("%s %v: no iPXE script:\n%s", name, c, s)
			}
			if !strings.HasSuffix(s, c.end) || !strings.Contains(s, c.has) || c.not != "" && strings.Contains(s, c.not) {
				t.Errorf("%s %v:\n%s", name, c, s)
			}
		}
	}
}

// What a machine says about itself must not become a command.
func TestSayIsOneHarmlessLine(t *testing.T) {
	for _, text := range []string{"a\nboot evil", "${username}", "x || sanboot", "a;b", "`id`", "it's \"q\"", "ü\x00\x1b[2J", "# c"} {
		got := say(text)
		body := strings.TrimPrefix(got, "echo slipway: ")
		if strings.Count(got, "\n") != 1 || strings.ContainsAny(body, "$`|&;\"'\\#\x1b\x00<>") {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestStartPassesEverythingOnce(t *testing.T) {
	k := Kernel{
		Base: "http://10.0.0.1:8080", Kernel: "netboot/vmlinuz", Initrd: "netboot/initrd-install.zst",
		Words: append([]string{"console=ttyS0,115200"}, InstallWords("http://10.0.0.1:8080", "abc", "52:54:00:12:34:56")...),
	}
	s := start(k, PlatformEFI, LocalExit, "installing n1")
	for _, want := range []string{
		"kernel --name vmlinuz http://10.0.0.1:8080/artifacts/netboot/vmlinuz initrd=initrd.zst console=ttyS0,115200 ",
		" slipway.mode=install slipway.server=http://10.0.0.1:8080 slipway.ticket=abc slipway.mac=52:54:00:12:34:56 ||",
		"initrd --name initrd.zst http://10.0.0.1:8080/artifacts/netboot/initrd-install.zst ||",
		"\nboot ||",
	} {
		if strings.Count(s, want) != 1 {
			t.Errorf("want once %q in\n%s", want, s)
		}
	}
}

// A pxed that is restarted while a machine loads is asked again, but not for ever.
func TestStartTriesAgain(t *testing.T) {
	s := start(Kernel{Base: "http://h", Kernel: "k", Initrd: "i"}, PlatformEFI, LocalExit, "go")
	order := []string{"set tries:int32 0\n:load\nkernel ", " || goto again\ninitrd ", " || goto again\nboot || goto failed\n",
		":again\nimgfree ||\ninc tries || goto failed\niseq ${tries} 6 && goto failed ||\n", "sleep 5\ngoto load\n", ":failed\nimgfree ||\n", "exit 1\n"}
	rest := s
	for _, part := range order {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("%q is not where it belongs in\n%s", part, s)
		}
		rest = after
	}
}

func TestWaitComesBack(t *testing.T) {
	s := wait("later", "http://h/boot/ipxe?mac=x", 20)
	if !strings.Contains(s, "sleep 20\nchain --replace --autofree http://h/boot/ipxe?mac=x ||\n") || !strings.HasSuffix(s, "exit 1\n") {
		t.Error(s)
	}
}
