package boot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/hosttool"
)

// tool runs a program of the host that must succeed and returns what it said.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: name, Args: args})
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// checkTable reads the disk that the node leaves behind.
func checkTable(t *testing.T, raw string) {
	if got := tool(t, "sgdisk", "-v", raw); !strings.Contains(got, "No problems found") {
		t.Errorf("sgdisk -v: %s", got)
	}
	var table struct {
		PartitionTable struct {
			SectorSize int64 `json:"sectorsize"`
			Partitions []struct {
				Name  string `json:"name"`
				Start int64  `json:"start"`
				Size  int64  `json:"size"`
			} `json:"partitions"`
		} `json:"partitiontable"`
	}
	if err := json.Unmarshal([]byte(tool(t, "sfdisk", "--json", raw)), &table); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, p := range table.PartitionTable.Partitions {
		found[p.Name] = true
		offset, size := p.Start*table.PartitionTable.SectorSize, p.Size*table.PartitionTable.SectorSize
		switch p.Name {
		case disklayout.NameState:
			tool(t, "e2fsck", "-fn", fmt.Sprintf("%s?offset=%d", raw, offset))
		case disklayout.NameESP, disklayout.NameSeed:
			checkFAT(t, raw, p.Name, offset, size)
		}
	}
	for _, name := range []string{disklayout.NameState, disklayout.NameESP, disklayout.NameSeed} {
		if !found[name] {
			t.Errorf("no partition %s: %+v", name, table)
		}
	}
}

// checkFAT copies a partition out, because fsck.vfat reads whole files.
func checkFAT(t *testing.T, raw, name string, offset, size int64) {
	part := raw + "." + name
	tool(t, "dd", "if="+raw, "of="+part, "bs=1M", "conv=sparse", "status=none",
		"iflag=skip_bytes,count_bytes", fmt.Sprintf("skip=%d", offset), fmt.Sprintf("count=%d", size))
	t.Logf("%s: %s", name, strings.TrimSpace(tool(t, "fsck.vfat", "-n", part)))
}
