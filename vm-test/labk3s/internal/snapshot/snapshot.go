// Package snapshot saves the data of etcd into files, as `k3s etcd-snapshot` does and
// as servers do by the clock.
package snapshot

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/robfig/cron/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Dir is a directory of snapshots of one node.
type Dir struct {
	Path     string
	Node     string
	Compress bool
}

// half is the end of the name of a snapshot that is being written.
const half = ".part"

// File is a snapshot.
type File struct {
	Name     string    `json:"name"`
	Location string    `json:"location"`
	NodeName string    `json:"nodeName,omitempty"`
	Created  time.Time `json:"createdAt"`
	Size     int64     `json:"size"`
	Status   string    `json:"status"`
}

// Save saves a snapshot from the only endpoint of the client. Its name is made of a
// base, the node's name and the time in seconds.
func (d Dir) Save(ctx context.Context, c *clientv3.Client, base string, now time.Time) (File, error) {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return File{}, err
	}
	name := fmt.Sprintf("%s-%s-%d", base, d.Node, now.Unix())
	r, err := c.Snapshot(ctx)
	if err != nil {
		return File{}, fmt.Errorf("asking etcd for a snapshot: %w", err)
	}
	defer r.Close()
	path := filepath.Join(d.Path, name)
	if d.Compress {
		path += ".zip"
	}
	if err := d.write(path, name, r); err != nil {
		os.Remove(path + half)
		return File{}, fmt.Errorf("saving a snapshot: %w", err)
	}
	return d.file(filepath.Base(path))
}

func (d Dir) write(path, name string, r io.Reader) error {
	f, err := os.OpenFile(path+half, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if d.Compress {
		err = compress(f, name, r)
	} else {
		_, err = io.Copy(f, r)
	}
	if err := errors.Join(err, f.Sync()); err != nil {
		return err
	}
	return os.Rename(path+half, path)
}

func compress(w io.Writer, name string, r io.Reader) error {
	z := zip.NewWriter(w)
	entry, err := z.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(entry, r); err != nil {
		return err
	}
	return z.Close()
}

func (d Dir) file(name string) (File, error) {
	path := filepath.Join(d.Path, name)
	st, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	return File{Name: name, Location: "file://" + path, NodeName: d.Node, Created: st.ModTime().UTC(), Size: st.Size(), Status: "successful"}, nil
}

// List is all snapshots, the newest last.
func (d Dir) List() ([]File, error) {
	entries, err := os.ReadDir(d.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := []File{}
	for _, e := range entries {
		if e.IsDir() || strings.HasSuffix(e.Name(), half) {
			continue
		}
		f, err := d.file(e.Name())
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b File) int { return a.Created.Compare(b.Created) })
	return out, nil
}

// Prune removes the oldest snapshots of a base until so many are left, and returns
// what it removed.
func (d Dir) Prune(base string, keep int) ([]File, error) {
	all, err := d.List()
	if err != nil || keep <= 0 {
		return nil, err
	}
	mine := slices.DeleteFunc(all, func(f File) bool { return !strings.HasPrefix(f.Name, base+"-"+d.Node+"-") })
	old := mine[:max(0, len(mine)-keep)]
	for _, f := range old {
		if err := os.Remove(filepath.Join(d.Path, f.Name)); err != nil {
			return nil, err
		}
	}
	return old, nil
}

// Delete removes a snapshot by its name.
func (d Dir) Delete(name string) error {
	if filepath.Base(name) != name {
		return fmt.Errorf("%q is not the name of a snapshot", name)
	}
	return os.Remove(filepath.Join(d.Path, name))
}

// Print prints a list as people or, with "json", as programs want it.
func Print(w io.Writer, files []File, format string) error {
	if format == "json" {
		return json.NewEncoder(w).Encode(files)
	}
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "Name\tLocation\tSize\tCreated")
	for _, f := range files {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", f.Name, f.Location, f.Size, f.Created.Format(time.RFC3339))
	}
	return t.Flush()
}

// ByTheClock saves a snapshot whenever a cron expression says so and keeps the newest
// ones, until ctx ends. tell hears of each, or why there is none.
func (d Dir) ByTheClock(ctx context.Context, c *clientv3.Client, expression, base string, keep int, tell func(File, error)) error {
	schedule, err := cron.ParseStandard(expression)
	if err != nil {
		return fmt.Errorf("etcd-snapshot-schedule-cron: %w", err)
	}
	for {
		timer := time.NewTimer(time.Until(schedule.Next(time.Now())))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case now := <-timer.C:
			f, err := d.Save(ctx, c, base, now)
			if err == nil {
				_, err = d.Prune(base, keep)
			}
			tell(f, err)
		}
	}
}
