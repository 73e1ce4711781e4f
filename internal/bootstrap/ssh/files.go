package ssh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// absent is the exit code by which Get's command says that there is no file; no
// program that it runs has it.
const absent = 44

// Get reads a file of the node. The error is an fs.ErrNotExist when it is not there.
func (h *Host) Get(ctx context.Context, name string) ([]byte, error) {
	q := Quote(name)
	data, err := h.Run(ctx, fmt.Sprintf("[ -e %s ] || exit %d\ncat -- %s", q, absent, q), nil)
	var ended *ExitError
	if errors.As(err, &ended) && ended.Code == absent {
		return nil, h.fail(&fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist})
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// put writes a file so that whoever reads it, and a power cut at any moment, finds
// the old one or the new one whole. The number of bytes is checked first: when the
// connection breaks, the end of the input looks like the end of the file.
const put = `set -eu
umask 022
mkdir -p -- %[1]s
umask 077
t=$(mktemp -- %[1]s/.slipway.XXXXXXXX)
trap 'rm -f -- "$t"' EXIT
trap 'exit 1' HUP INT PIPE TERM
cat >"$t"
[ "$(wc -c <"$t")" -eq %[3]d ] || { echo 'the content did not arrive whole' >&2; exit 1; }
chmod %[4]o -- "$t"
sync -- "$t"
mv -fT -- "$t" %[2]s
sync -- %[1]s
trap - EXIT`

// Put writes a file of the node, atomically and flushed, owned by root; directories
// on the way are made 0755. The content travels by standard input.
func (h *Host) Put(ctx context.Context, name string, perm fs.FileMode, data []byte) error {
	if data == nil {
		data = []byte{} // an empty file is not the same as no input
	}
	command := fmt.Sprintf(put, Quote(path.Dir(name)), Quote(name), len(data), perm.Perm())
	if _, err := h.Run(ctx, command, data); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
