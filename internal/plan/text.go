package plan

import (
	"fmt"
	"io"
	"strings"
)

// Text writes the plan for a person who decides whether to build it.
func (p Plan) Text(w io.Writer) error {
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "  %-14s %s\n", key, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "plan %s\n", p.Digest().Short())
	line("environment", "%s (cluster %s, %s, %s)", p.Environment, p.Cluster, p.Substrate, p.Status)
	line("packages", "%d from Debian %s, %s to fetch at most", len(p.Rootfs.Packages), p.Rootfs.Suite, mib(p.downloads()))
	line("kernel", "%s %s", p.Kernel.Package.Name, p.Kernel.Package.Version)
	line("initramfs", "nodeinit %s, %d modules and what they need", p.Rootfs.Node.Short(), len(p.Kernel.Modules))
	line("command line", "%s", strings.Join(p.Kernel.CommandLine, " "))
	line("overlay", "%s, %d patterns left out of the packages", p.Rootfs.Overlay.Short(), len(p.Rootfs.Drop))
	line("payload", "%s", p.Payload.names())
	for _, a := range p.Payload.Absent {
		line("not in it", "%s %s: %s", a.Name, a.Version, a.Why)
	}
	line("boot files", "EFI system partition of %s", mib(p.Disk.ESPSize))
	line("slots", "A and B, %s each", p.slotSize())
	line("seed in image", "%s", p.embedded())
	for _, s := range p.Seeds {
		line("seed", "%s: %s", s.Node, s.names())
	}
	line("ipxe", "%s", p.IPXE.Version)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p Plan) downloads() int64 {
	total := p.Kernel.Package.Size + p.IPXE.Size
	for _, d := range p.Rootfs.Packages {
		total += d.Size
	}
	for _, in := range p.Payload.Inputs {
		total += in.Size
	}
	return total
}

func (p Payload) names() string {
	if len(p.Inputs) == 0 {
		return "nothing"
	}
	out := make([]string, 0, len(p.Inputs))
	for _, in := range p.Inputs {
		out = append(out, in.Name+" "+in.Version)
	}
	return strings.Join(out, ", ")
}

func (p Plan) slotSize() string {
	if p.Disk.SlotSize == 0 {
		return "content and a third"
	}
	return mib(p.Disk.SlotSize)
}

func (p Plan) embedded() string {
	if p.Disk.Seed == "" {
		return "none: CIDATA stays empty, attach a seed or let the installer write it"
	}
	return p.Disk.Seed
}

func (s Seed) names() string {
	out := make([]string, 0, len(s.Documents))
	for _, d := range s.Documents {
		out = append(out, fmt.Sprintf("%s %d B", d.Name, d.Size))
	}
	return strings.Join(out, ", ")
}

func mib(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
