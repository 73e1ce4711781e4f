package compare

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/slipway/slipway/internal/hosttool"
)

// source is a file system inside a file.
type source struct {
	path   string
	offset int64
}

// describeSquashfs finds the first path that differs. unsquashfs can write a
// squashfs as one stream, a listing and then all contents, so that nothing has to
// be unpacked anywhere.
func describeSquashfs(ctx context.Context, a, b source, d *Difference) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sa, sb := openSquashfs(ctx, a), openSquashfs(ctx, b)
	defer sa.close()
	defer sb.close()
	la, errA := sa.listing()
	lb, errB := sb.listing()
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if diff := listingDifference(la, lb); diff != "" {
		d.What = diff
		return nil
	}
	at, err := sameStreams(sa.out, sb.out)
	if err != nil {
		return err
	}
	if at < 0 {
		d.What = "same files, but another order, compression or superblock"
		return nil
	}
	d.What = fileAt(la, at) + " differs in content"
	return nil
}

// squashfs is a running unsquashfs.
type squashfs struct {
	out  *bufio.Reader
	pipe *io.PipeReader
	done chan struct{}
}

func openSquashfs(ctx context.Context, s source) *squashfs {
	r, w := io.Pipe()
	q := &squashfs{out: bufio.NewReaderSize(r, 1<<20), pipe: r, done: make(chan struct{})}
	go func() {
		defer close(q.done)
		err := hosttool.Run(ctx, hosttool.Cmd{Name: "unsquashfs", Stdout: w, Args: []string{
			"-quiet", "-no-progress", "-offset", strconv.FormatInt(s.offset, 10), "-pf", "/dev/stdout", s.path}})
		w.CloseWithError(err)
	}()
	return q
}

// close ends the program, if it still runs, and waits for it.
func (q *squashfs) close() {
	q.pipe.Close()
	<-q.done
}

// listing reads the part of the stream that names the files.
func (q *squashfs) listing() ([]string, error) {
	var lines []string
	for {
		line, err := q.out.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) { // a squashfs without any content has no data part
				return lines, nil
			}
			return nil, err
		}
		if strings.HasPrefix(line, "# START OF DATA") {
			_, err := q.out.ReadString('\n') // and a line that only ends the heading
			return lines, err
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
}

// listingDifference describes the first line in which two listings differ: the
// path, and its type, time, mode, owner, group and size on both sides.
func listingDifference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return splitListing(b[i]).path + " is only in the second build"
		case i >= len(b):
			return splitListing(a[i]).path + " is only in the first build"
		case a[i] == b[i]:
			continue
		}
		x, y := splitListing(a[i]), splitListing(b[i])
		switch {
		case x.path == y.path:
			return fmt.Sprintf("%s is %q in the first build, %q in the second (type, time, mode, owner, group, size)", x.path, x.rest, y.rest)
		case hasPath(b, x.path):
			return y.path + " is only in the second build"
		default:
			return x.path + " is only in the first build"
		}
	}
	return ""
}

type listed struct{ path, rest string }

// splitListing splits a line "path TYPE ..."; spaces in the path are escaped by a
// backslash. The offset of a regular file is cut off: it follows from the others.
func splitListing(line string) listed {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case ' ':
			rest := line[i+1:]
			if f := strings.Fields(rest); len(f) == 7 && f[0] == "R" {
				rest = strings.Join(f[:6], " ")
			}
			return listed{path: line[:i], rest: rest}
		}
	}
	return listed{path: line}
}

func hasPath(lines []string, path string) bool {
	for _, l := range lines {
		if splitListing(l).path == path {
			return true
		}
	}
	return false
}

// fileAt names the regular file whose content holds byte at of the data part:
// "path R time mode uid gid size offset sparse".
func fileAt(lines []string, at int64) string {
	for _, l := range lines {
		f := strings.Fields(l[len(splitListing(l).path):])
		if len(f) < 7 || f[0] != "R" {
			continue
		}
		size, errA := strconv.ParseInt(f[5], 10, 64)
		offset, errB := strconv.ParseInt(f[6], 10, 64)
		if errA == nil && errB == nil && at >= offset && at < offset+size {
			return splitListing(l).path
		}
	}
	return "a file"
}

// sameStreams is the offset of the first byte in which two streams differ, or -1.
func sameStreams(a, b io.Reader) (int64, error) {
	bufA, bufB := make([]byte, 256<<10), make([]byte, 256<<10)
	for at := int64(0); ; {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		k := min(n, m)
		if !bytes.Equal(bufA[:k], bufB[:k]) {
			for i := range k {
				if bufA[i] != bufB[i] {
					return at + int64(i), nil
				}
			}
		}
		at += int64(k)
		if n != m {
			return at, nil
		}
		if err := errors.Join(unexpected(errA), unexpected(errB)); err != nil {
			return 0, err
		}
		if errA != nil || errB != nil {
			return -1, nil
		}
	}
}

// unexpected is err unless it is the end of a stream.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
