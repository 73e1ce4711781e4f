package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/etcd"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/vm-test/controlplane"
)

// written is an etcd that writes a text.
type written string

func (w written) Snapshot(_ context.Context, path string, tell func(int64)) (member.Snapshot, error) {
	tell(int64(len(w)))
	return member.Snapshot{Size: int64(len(w)), Digest: digest.Of([]byte(w)), Revision: 7}, os.WriteFile(path, []byte(w), 0o600)
}

type broken struct{}

func (broken) Snapshot(_ context.Context, path string, _ func(int64)) (member.Snapshot, error) {
	return member.Snapshot{}, errors.Join(errors.New("cut off"), os.WriteFile(path+etcd.Half, nil, 0o600))
}

func keeper(t *testing.T, e Etcd) Keeper {
	t.Helper()
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	return Keeper{Dir: filepath.Join(t.TempDir(), "snapshots"), Etcd: e, Environment: "lab", Keep: 3, Now: func() time.Time { now = now.Add(time.Minute); return now }}
}

func take(t *testing.T, k Keeper, run string) Info {
	t.Helper()
	i, err := k.Take(t.Context(), run, "by hand", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func files(t *testing.T, dir string) string {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range left {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestKeepsTheNewest(t *testing.T) {
	k := keeper(t, written("data"))
	if list, err := k.List(); err != nil || len(list) != 0 {
		t.Errorf("before the first: %v, %v", list, err)
	}
	for range 5 {
		take(t, k, "")
	}
	list, err := k.List()
	if err != nil || len(list) != 3 || list[0].Taken.Minute() != 5 || list[2].Taken.Minute() != 3 || list[0].Revision != 7 || list[0].Environment != "lab" {
		t.Errorf("%+v, %v", list, err)
	}
	if want := "etcd-20260501T100300Z.db etcd-20260501T100300Z.json etcd-20260501T100400Z.db etcd-20260501T100400Z.json etcd-20260501T100500Z.db etcd-20260501T100500Z.json"; files(t, k.Dir) != want {
		t.Errorf("left are %s", files(t, k.Dir))
	}
	if st, err := os.Stat(k.Dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	k.Now = func() time.Time { return list[0].Taken } // twice within a second
	if again := take(t, k, ""); again.Name != "etcd-20260501T100500Z-2.db" {
		t.Errorf("%+v", again)
	}
}

func TestOfRun(t *testing.T) {
	k := keeper(t, written("data"))
	has := func(run string, want bool) {
		t.Helper()
		if got, err := k.Has(t.Context(), run); err != nil || got != want {
			t.Errorf("%s: %v, %v", run, got, err)
		}
	}
	has("run-1", false)
	i := take(t, k, "run-1")
	take(t, k, "run-2")
	has("run-1", true)
	if err := os.WriteFile(k.Path(i), []byte("datA"), 0o600); err != nil {
		t.Fatal(err)
	}
	has("run-1", false)
	if err := k.Verify(i); !errors.Is(err, digest.ErrMismatch) {
		t.Errorf("%v", err)
	}
	if err := os.Remove(k.Path(i)); err != nil {
		t.Fatal(err)
	}
	has("run-1", false)
}

// What a killed process leaves, at any moment, is no snapshot and goes with the next.
func TestSweeps(t *testing.T) {
	k := keeper(t, broken{})
	if _, err := k.Take(t.Context(), "", "", func(string) {}); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(k.Dir, "etcd-20250101T000000Z.db"), nil, 0o600); err != nil { // killed before it was written down
		t.Fatal(err)
	}
	if list, err := k.List(); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	k.Etcd = written("data")
	i := take(t, k, "")
	if want := i.Name + " " + strings.TrimSuffix(i.Name, dataEnd) + infoEnd; files(t, k.Dir) != want {
		t.Errorf("left are %s", files(t, k.Dir))
	}
	if err := os.WriteFile(filepath.Join(k.Dir, "x.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := k.List(); err == nil {
		t.Error("a damaged description is passed over")
	}
}

func TestRealEtcd(t *testing.T) {
	p := controlplane.Start(t, controlplane.Options{})
	c := etcd.New(etcd.Config{Endpoints: p.EtcdEndpoints(), TLS: p.EtcdTLS()})
	defer c.Close()
	k := keeper(t, c)
	var words []string
	i, err := k.Take(t.Context(), "run-1", "before n1 is rebuilt", func(w string) { words = append(words, w) })
	if err != nil || i.Size == 0 || i.Cluster == 0 || len(words) == 0 {
		t.Fatalf("%+v, %v", i, err)
	}
	if err := k.Verify(i); err != nil {
		t.Error(err)
	}
	f, err := os.Open(k.Path(i))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := etcd.Verify(f); err != nil {
		t.Error(err)
	}
}
