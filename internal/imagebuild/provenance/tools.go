package provenance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
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

// version is what a line must hold to be one about the version.
var version = regexp.MustCompile(`version [0-9]|[0-9]+\.[0-9]+`)

// ask returns the first line with a version that the tool says about itself. Some
// say it on standard error, and mkfs.vfat in its help only.
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
	// Two buffers: what comes first of two streams is chance, and the statement
	// must not depend on it.
	var out, talk bytes.Buffer
	err := hosttool.Run(ctx, hosttool.Cmd{Name: name, Args: []string{flag}, Stdout: &out, Stderr: &talk})
	for line := range strings.Lines(out.String() + "\n" + talk.String()) {
		if version.MatchString(line) {
			return strings.TrimSpace(line), nil
		}
	}
	return "", errors.Join(fmt.Errorf("%s does not say its version", name), err)
}
