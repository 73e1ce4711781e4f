package etcd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/digest"
)

// Half is the end of the name of a snapshot that is being written. What a killed
// process leaves carries it, and may be removed.
const Half = ".half"

// sector is the unit in which etcd's database grows; what stands behind a multiple
// of it is the hash (etcdutl snapshot restore judges by the same).
const sector = 512

// Snapshot writes the whole data of etcd into a new file of mode 0600: it holds all
// Secrets of the cluster. The file gets its name when it is complete, its hash was
// verified and it is on the disk. tell hears the bytes so far.
func (c *Client) Snapshot(ctx context.Context, path string, tell func(bytes int64)) (member.Snapshot, error) {
	var errs []error
	for _, endpoint := range c.config.Endpoints {
		s, err := c.snapshotOf(ctx, endpoint, path, tell)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		errs = append(errs, fmt.Errorf("%s: %s", endpoint, reason(err)))
	}
	return member.Snapshot{}, fmt.Errorf("no member of etcd gives a snapshot: %w", errors.Join(errs...))
}

func (c *Client) snapshotOf(ctx context.Context, endpoint, path string, tell func(int64)) (member.Snapshot, error) {
	// A member that lost its leader gives what it remembers; that is no snapshot of
	// the cluster. So it has to agree with the others first. The stream itself says
	// neither whose data it is nor how new.
	var s member.Snapshot
	agrees := func(ctx context.Context, one *clientv3.Client) error {
		got, err := one.Get(ctx, "health")
		if err == nil {
			s.Cluster, s.Revision = member.ID(got.Header.ClusterId), got.Header.Revision
		}
		return err
	}
	if err := c.one(ctx, endpoint, agrees); err != nil {
		return member.Snapshot{}, err
	}
	one, err := c.at(endpoint)
	if err != nil {
		return member.Snapshot{}, err
	}
	answer, err := one.SnapshotWithVersion(ctx)
	if err != nil {
		return member.Snapshot{}, err
	}
	defer answer.Snapshot.Close()
	s.Version = answer.Version
	s.Size, s.Digest, err = writeFile(path, answer.Snapshot, tell)
	return s, err
}

// writeFile gives the file its name only when it is whole.
func writeFile(path string, r io.Reader, tell func(int64)) (size int64, sum digest.Digest, err error) {
	half := path + Half
	f, err := os.OpenFile(half, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return 0, sum, err
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(half)
		}
	}()
	hashed := digest.NewWriter(f)
	if _, err := io.Copy(hashed, &counting{r: r, tell: tell}); err != nil {
		return 0, sum, err
	}
	if err := f.Sync(); err != nil {
		return 0, sum, err
	}
	if err := Verify(f); err != nil {
		return 0, sum, err
	}
	if err := os.Rename(half, path); err != nil {
		return 0, sum, err
	}
	return hashed.Size(), hashed.Sum(), syncDir(filepath.Dir(path))
}

type counting struct {
	r    io.Reader
	n    int64
	tell func(int64)
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.tell(c.n)
	return n, err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Verify compares a snapshot with the SHA-256 that etcd has put at its end.
func Verify(f io.ReadSeeker) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	data := size - sha256.Size
	if data <= 0 || data%sector != 0 {
		return fmt.Errorf("%d bytes are no snapshot of etcd with its hash: it was cut off", size)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.CopyN(h, f, data); err != nil {
		return err
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(f, want); err != nil {
		return err
	}
	if got := h.Sum(nil); string(got) != string(want) {
		return fmt.Errorf("the snapshot does not have the hash that etcd gave it: %w", digest.ErrMismatch)
	}
	return nil
}
