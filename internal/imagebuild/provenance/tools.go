package provenance

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/hosttool"
)

// HostTools asks the programs of the build host for their versions. An unknown
// way of asking is not an error: the tool is then asked with --version.
func HostTools(ctx context.Context, names ...string) ([]Tool, error) {
	var out []Tool
	for _, name := range names {
		version, err := ask(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("asking for a version: %w", err)
		}
		out = append(out, Tool{Name: name, Version: version})
	}
	return out, nil
}

// ask returns the first line that the tool says about itself. Some say it on
// standard error, and mksquashfs and mkfs.vfat end with an error when asked.
func ask(ctx context.Context, name string) (string, error) {
	if _, err := hosttool.Find(name); err != nil {
		return "", err
	}
	flag := "--version"
	switch name {
	case "mksquashfs", "unsquashfs":
		flag = "-version"
	case "mkfs.vfat", "fsck.vfat":
		flag = "--help"
	}
	var said bytes.Buffer
	err := hosttool.Run(ctx, hosttool.Cmd{Name: name, Args: []string{flag}, Stdout: &said, Stderr: &said})
	line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
	if line == "" && err != nil {
		return "", err
	}
	return strings.TrimSpace(line), nil
}
