package machine

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
)

func sampleReport() Report {
	return Report{
		Format: ReportFormat, Identity: Identity{Vendor: "ACME", Serial: "A1", UUID: "4c4c4544-0042-3510-8052-b4c04f4e4d32"},
		Firmware: Firmware{Mode: "uefi", TPM: "2.0"}, CPU: CPU{Model: "x", Cores: 4, Flags: []string{"vmx"}}, Memory: 16 << 30,
		Disks: []Disk{{Name: "nvme0n1", Serial: "S1", Size: 512e9, Sector: 512, Content: []Signature{{Type: "gpt"}, {Partition: 1, Type: "vfat", Label: "EFI"}}}},
		NICs:  []NIC{{Name: "eno1", MAC: "52:54:00:00:00:01", Link: true, Boot: true}, {Name: "eno2", MAC: "52:54:00:00:00:02", Mbps: -1}},
	}
}

func sampleReceipt() Receipt {
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	return Receipt{
		Format: ReceiptFormat, Ticket: strings.Repeat("ab", 32), Node: "n1", Disk: Disk{Name: "sda", Serial: "S1", Size: 1e9},
		Index: digest.Of([]byte("i")), Seed: digest.Of([]byte("s")), Bytes: 1e9, ReadBack: true, Written: true, Started: at, Finished: at.Add(time.Minute),
		Data: []DataResult{{Name: "d", Action: "kept"}},
	}
}

func sampleTicket() Ticket {
	return Ticket{
		Format: TicketFormat, ID: strings.Repeat("0f", 32), Node: "n1", Cluster: "c", Expires: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC),
		Index: digest.Of([]byte("i")), Key: "ssh-ed25519 AAAA", System: cluster.Selector{Serial: "S1"},
		Data: []DataOrder{{Name: "d", Disk: cluster.Selector{Serial: "D1"}, Policy: cluster.PolicyKeep}},
	}
}

// Each change makes a good document a bad one; the word must be in the reason.
func TestCheckReport(t *testing.T) {
	if err := sampleReport().Check(); err != nil {
		t.Fatal(err)
	}
	for word, spoil := range map[string]func(*Report){
		"format":       func(r *Report) { r.Format = "slipway-report/2" },
		"firmware":     func(r *Report) { r.Firmware.Mode = "coreboot" },
		"TPM":          func(r *Report) { r.Firmware.TPM = "3" },
		"control":      func(r *Report) { r.Identity.Serial = "A\x1b[2J" },
		"identity":     func(r *Report) { r.Identity.Vendor = strings.Repeat("x", 300) },
		"memory":       func(r *Report) { r.Memory = -1 },
		"disks":        func(r *Report) { r.Disks = make([]Disk, 65) },
		"a disk":       func(r *Report) { r.Disks[0].Size = 1 << 62 },
		"sectors":      func(r *Report) { r.Disks[0].Sector = -512 },
		"signatures":   func(r *Report) { r.Disks[0].Content = make([]Signature, 1000) },
		"partition":    func(r *Report) { r.Disks[0].Content[1].Partition = -1 },
		"canonical":    func(r *Report) { r.NICs[0].MAC = "52:54:00:00:00:0A" },
		"two network":  func(r *Report) { r.NICs[1].MAC = r.NICs[0].MAC },
		"Mbit":         func(r *Report) { r.NICs[0].Mbps = -5 },
		"processors":   func(r *Report) { r.CPU.Cores = -1 },
		"interfaces, ": func(r *Report) { r.NICs = make([]NIC, 65) },
	} {
		r := sampleReport()
		spoil(&r)
		wantDocument(t, word, r.Check())
	}
}

func wantDocument(t *testing.T, word string, err error) {
	t.Helper()
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Code != CodeDocument || !strings.Contains(refusal.Reason, word) {
		t.Errorf("%q: %v", word, err)
	}
}

func TestCheckReceipt(t *testing.T) {
	if err := sampleReceipt().Check(); err != nil {
		t.Fatal(err)
	}
	for word, spoil := range map[string]func(*Receipt){
		"format":     func(r *Receipt) { r.Format = "" },
		"64 hex":     func(r *Receipt) { r.Ticket = strings.Repeat("AB", 32) },
		"begins":     func(r *Receipt) { r.Finished = r.Started.Add(-time.Second) },
		"written":    func(r *Receipt) { r.Index = digest.Digest{} },
		"where":      func(r *Receipt) { r.Disk.Serial = " " },
		"what was d": func(r *Receipt) { r.Data[0].Action = "eaten" },
		"reasons":    func(r *Receipt) { r.Reasons = make([]string, 300) },
		"host keys":  func(r *Receipt) { r.HostKeys = make([]string, 70) },
		"longer":     func(r *Receipt) { r.Error = strings.Repeat("e", 5000) },
	} {
		r := sampleReceipt()
		spoil(&r)
		wantDocument(t, word, r.Check())
	}
	failed := Receipt{Format: ReceiptFormat, Ticket: strings.Repeat("ab", 32), Error: "no disk"}
	if err := failed.Check(); err != nil {
		t.Errorf("a receipt of failure needs no more than its reason: %v", err)
	}
	a, b := sampleReceipt(), sampleReceipt()
	b.Bytes++
	if a.Digest() != sampleReceipt().Digest() || a.Digest() == b.Digest() || a.Digest().IsZero() {
		t.Error("the digest does not tell receipts apart")
	}
}

func TestCheckTicket(t *testing.T) {
	if err := sampleTicket().Check(); err != nil {
		t.Fatal(err)
	}
	for word, spoil := range map[string]func(*Ticket){
		"64 hex":         func(t *Ticket) { t.ID = "abc" },
		"format":         func(t *Ticket) { t.Format = "x" },
		"no node":        func(t *Ticket) { t.Node = "" },
		"which image":    func(t *Ticket) { t.Index = digest.Digest{} },
		"signed":         func(t *Ticket) { t.Key = "" },
		"which disk":     func(t *Ticket) { t.System = cluster.Selector{} },
		"sanitize":       func(t *Ticket) { t.Sanitize = "burn" },
		"policy":         func(t *Ticket) { t.Data[0].Policy = "" },
		"named twice":    func(t *Ticket) { t.Data = append(t.Data, t.Data[0]) },
		"to overwrite, ": func(t *Ticket) { t.Overwrite = make([]string, 65) },
	} {
		ticket := sampleTicket()
		spoil(&ticket)
		wantDocument(t, word, ticket.Check())
	}
}

func TestCheckProgressAndReady(t *testing.T) {
	if err := (Progress{Stage: StageWrite, Done: 1, Total: 2}).Check(); err != nil {
		t.Error(err)
	}
	for word, p := range map[string]Progress{"stage": {}, "done": {Stage: StageWrite, Done: -1}, "rate": {Stage: StageWrite, Rate: -1}, "note": {Stage: StageWrite, Note: strings.Repeat("n", 300)}} {
		wantDocument(t, word, p.Check())
	}
	if err := (Ready{Node: "n1"}).Check(); err != nil {
		t.Error(err)
	}
	wantDocument(t, "no node", Ready{}.Check())
}

func TestDecodeIsStrict(t *testing.T) {
	for word, body := range map[string]string{
		"behind": `{"stage":"write"} {}`, "unknown field": `{"stage":"write","x":1}`, "valid": `{"stage":`, "more than": `{"note":"` + strings.Repeat("n", MaxDocument) + `"}`,
		"cannot unmarshal": `[]`,
	} {
		wantDocument(t, word, Decode([]byte(body), &Progress{}))
	}
	var p Progress
	if err := Decode([]byte(` {"stage":"write","done":3}`+"\n"), &p); err != nil || p.Done != 3 {
		t.Errorf("%v, %v", p, err)
	}
}

// What passes Check has to survive the way through the ledger unchanged.
func FuzzDocuments(f *testing.F) {
	for _, v := range []any{sampleReport(), sampleReceipt(), sampleTicket(), Progress{Stage: StageWrite}, Ready{Node: "n1"}} {
		b, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		roundTrip[Report](t, b)
		roundTrip[Receipt](t, b)
		roundTrip[Ticket](t, b)
		roundTrip[Progress](t, b)
		roundTrip[Ready](t, b)
	})
}

func roundTrip[T interface{ Check() error }](t *testing.T, b []byte) {
	var first, second T
	if Decode(b, &first) != nil || first.Check() != nil {
		return
	}
	one, err := json.Marshal(first)
	if err != nil {
		t.Fatalf("passed its check and cannot be written: %v", err)
	}
	if err := Decode(one, &second); err != nil {
		t.Fatalf("%s: %v", one, err)
	}
	if two, err := json.Marshal(second); err != nil || string(two) != string(one) {
		t.Errorf("%s became %s, %v", one, two, err)
	}
	if err := second.Check(); err != nil {
		t.Errorf("%s: %v", one, err)
	}
}
