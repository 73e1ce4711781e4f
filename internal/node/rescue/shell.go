package rescue

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/node/console"
	"github.com/slipway/slipway/internal/node/disk"
)

// shell gives the person at one console a shell: the slot's own when the slot could
// be mounted, otherwise a few built-in commands for looking around.
func shell(c *console.Consoles, t Trouble, device string) {
	tty, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		c.Tell(fmt.Sprintf("opening %s: %v\n", device, err))
		return
	}
	defer tty.Close()
	if t.Root != "" {
		if err := slotShell(tty, t.Root); err != nil {
			fmt.Fprintf(tty, "shell of the slot: %v\r\n", err)
		}
		return
	}
	builtin(tty)
}

func slotShell(tty *os.File, root string) error {
	for _, dir := range []string{"dev", "proc", "sys", "run"} {
		at := filepath.Join(root, dir)
		if err := unix.Mount("/"+dir, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("showing /%s: %w", dir, err)
		}
		defer func() { _ = unix.Unmount(at, unix.MNT_DETACH) }()
	}
	cmd := exec.Command("/bin/bash", "--norc", "-i")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TERM=linux", "PS1=slipway rescue# ", "HOME=/"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Setsid: true, Setctty: true, Ctty: 0}
	return cmd.Run()
}

// command is a built-in command.
type command struct {
	help string
	run  func(w io.Writer, args []string) error
}

func commands() map[string]command {
	return map[string]command{
		"ls":     {"DIR        list a directory", list},
		"cat":    {"FILE       show a file", show},
		"disks":  {"           show disks and partitions", disks},
		"mounts": {"           show what is mounted", func(w io.Writer, _ []string) error { return show(w, []string{"/proc/mounts"}) }},
		"dmesg":  {"           show the kernel's messages", kernelLog},
	}
}

// builtin is a minimal shell for when nothing of the slot can be trusted.
func builtin(tty *os.File) {
	fmt.Fprint(tty, "minimal shell: help lists the commands, exit goes back\r\n")
	in := bufio.NewScanner(tty)
	for {
		fmt.Fprint(tty, "slipway rescue> ")
		if !in.Scan() {
			return
		}
		words := strings.Fields(in.Text())
		if len(words) == 0 {
			continue
		}
		if words[0] == "exit" {
			return
		}
		if err := runCommand(tty, words); err != nil {
			fmt.Fprintf(tty, "%v\r\n", err)
		}
	}
}

func runCommand(w io.Writer, words []string) error {
	all := commands()
	if cmd, ok := all[words[0]]; ok {
		return cmd.run(w, words[1:])
	}
	if words[0] != "help" {
		return fmt.Errorf("no command %q, help lists them", words[0])
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(w, "  %-7s %s\r\n", name, all[name].help)
	}
	return nil
}

func list(w io.Writer, args []string) error {
	dir := "/"
	if len(args) > 0 {
		dir = args[0]
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			fmt.Fprintf(w, "%s %12d %s\r\n", info.Mode(), info.Size(), e.Name())
		}
	}
	return err
}

func show(w io.Writer, args []string) error {
	for _, name := range args {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, strings.ReplaceAll(string(data), "\n", "\r\n")); err != nil {
			return err
		}
	}
	return nil
}

func disks(w io.Writer, _ []string) error {
	found, err := disk.List()
	for _, d := range found {
		fmt.Fprintf(w, "%s, %d MiB\r\n", d, d.Size>>20)
		for _, p := range d.Partitions {
			fmt.Fprintf(w, "  %-16s %-16s %8d MiB\r\n", p.Path, p.Name, p.Size>>20)
		}
	}
	return err
}

func kernelLog(w io.Writer, _ []string) error {
	const readAll = 3 // SYSLOG_ACTION_READ_ALL of syslog(2)
	buf := make([]byte, 256<<10)
	n, err := unix.Klogctl(readAll, buf)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.ReplaceAll(string(buf[:n]), "\n", "\r\n"))
	return err
}
