package snapshot

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slipway/slipway/vm-test/labk3s/internal/member"
)

// etcd is a member of its own on the loopback.
func etcd(t *testing.T) *clientv3.Client {
	t.Helper()
	var urls []string
	for range 2 {
		l, err := net.Listen("tcp", "127.83.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, "http://"+l.Addr().String())
		l.Close()
	}
	e, err := member.Start(t.Context(), member.Config{Name: "n1", Dir: t.TempDir(), Clients: urls[:1], Peer: urls[1], Initial: "n1=" + urls[1], NoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	c, err := member.Connect(urls[:1], member.Files{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestSave(t *testing.T) {
	c := etcd(t)
	if _, err := c.Put(t.Context(), "key", "a value that is found in the file"); err != nil {
		t.Fatal(err)
	}
	d := Dir{Path: filepath.Join(t.TempDir(), "snapshots"), Node: "n1"}
	now := time.Unix(1700000000, 0)
	plain, err := d.Save(t.Context(), c, "on-demand", now)
	if err != nil {
		t.Fatal(err)
	}
	d.Compress = true
	zipped, err := d.Save(t.Context(), c, "on-demand", now)
	if err != nil {
		t.Fatal(err)
	}
	if plain.Name != "on-demand-n1-1700000000" || zipped.Name != plain.Name+".zip" {
		t.Errorf("the names are %s and %s", plain.Name, zipped.Name)
	}
	text, err := os.ReadFile(strings.TrimPrefix(plain.Location, "file://"))
	if err != nil || !bytes.Contains(text, []byte("a value that is found in the file")) {
		t.Errorf("the snapshot does not hold the data, %v", err)
	}
	if st, _ := os.Stat(filepath.Join(d.Path, plain.Name)); st.Mode().Perm() != 0o600 {
		t.Errorf("the snapshot has mode %v", st.Mode())
	}
	z, err := zip.OpenReader(filepath.Join(d.Path, zipped.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	entry, err := z.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(entry); err != nil || z.File[0].Name != plain.Name || !bytes.Contains(got, []byte("a value that is found in the file")) {
		t.Errorf("the archive holds %s, %v", z.File[0].Name, err)
	}
}

func TestListPruneDelete(t *testing.T) {
	d := Dir{Path: t.TempDir(), Node: "n1"}
	for i, name := range []string{"etcd-snapshot-n1-1", "etcd-snapshot-n1-2.zip", "on-demand-n1-3", "etcd-snapshot-n1-4", "etcd-snapshot-n1-5" + half} {
		path := filepath.Join(d.Path, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := d.Prune("etcd-snapshot", 2)
	if err != nil || len(removed) != 1 || removed[0].Name != "etcd-snapshot-n1-1" {
		t.Errorf("removed %v, %v", removed, err)
	}
	if err := d.Delete("../x"); err == nil {
		t.Error("something outside was deleted")
	}
	if err := d.Delete("on-demand-n1-3"); err != nil {
		t.Error(err)
	}
	files, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	if want := []string{"etcd-snapshot-n1-2.zip", "etcd-snapshot-n1-4"}; !slices.Equal(names, want) {
		t.Errorf("left are %v, want %v", names, want)
	}
	var out bytes.Buffer
	if err := Print(&out, files, ""); err != nil || len(strings.Split(out.String(), "\n")) != 4 {
		t.Errorf("the list is\n%s%v", out.String(), err)
	}
	if fmt.Sprint(files[0].Created) != "1970-01-01 00:16:41 +0000 UTC" {
		t.Errorf("created %v", files[0].Created)
	}
}

func TestListOfNothing(t *testing.T) {
	if files, err := (Dir{Path: "/nonexistent"}).List(); err != nil || len(files) != 0 {
		t.Errorf("got %v, %v", files, err)
	}
}
