package gpt

import (
	"os"
	"regexp"
	"testing"
)

func TestRenewedTable(t *testing.T) {
	path, disk := image(t)
	f := open(t, path)
	head := make([]byte, HeadSize(sector))
	if _, err := f.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	calls := byte(0)
	next := func() [16]byte {
		calls++
		return [16]byte{calls, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	renewed, id, err := Renew(head, sector, next)
	if err != nil {
		t.Fatal(err)
	}
	start, tail, err := Move(renewed, sector, disk.Size)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		data []byte
		at   int64
	}{{start, 0}, {tail, disk.Size - int64(len(tail))}} {
		if _, err := f.WriteAt(w.data, w.at); err != nil {
			t.Fatal(err)
		}
	}
	sgdisk(t, path)
	table, err := Read(f, sector, 1)
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^[0-9A-F]{8}-FFFF-4FFF-BF00-000000000000$`)
	seen := map[string]bool{}
	for _, p := range table.Partitions {
		seen[p.GUID] = true
		if !form.MatchString(p.GUID) {
			t.Errorf("partition %d has GUID %s", p.Number, p.GUID)
		}
	}
	if table.GUID != id || !form.MatchString(id) || len(seen) != len(disk.Partitions) || seen[id] {
		t.Errorf("disk %s (reported %s), partitions %v", table.GUID, id, seen)
	}
	for i, p := range table.Partitions {
		p.GUID = disk.Partitions[i].GUID
		if p != disk.Partitions[i] {
			t.Errorf("partition %d changed: %+v", p.Number, p)
		}
	}
}

func TestRenewRefuses(t *testing.T) {
	next := func() [16]byte { return [16]byte{} }
	if _, _, err := Renew(make([]byte, HeadSize(sector)), sector, next); err == nil {
		t.Error("renewed zeros")
	}
	if _, _, err := Renew(make([]byte, 100), sector, next); err == nil {
		t.Error("renewed a piece")
	}
	path, _ := image(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[sector+60] ^= 1
	if _, _, err := Renew(data[:HeadSize(sector)], sector, next); err == nil {
		t.Error("renewed a damaged table")
	}
}
