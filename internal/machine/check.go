package machine

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
)

// Bounds of documents that come over the wire.
const (
	// MaxDocument is the largest accepted body, in bytes.
	MaxDocument = 256 << 10
	maxItems    = 64  // disks, NICs, flags, signatures of a disk, reasons, …
	maxText     = 256 // bytes of one string
	maxLong     = 4096
	maxBytes    = int64(1) << 60
)

// Decode reads one JSON document strictly: no unknown keys, nothing behind it, not
// more than MaxDocument bytes.
func Decode(b []byte, into any) error {
	if len(b) > MaxDocument {
		return Refuse(CodeDocument, "", "the document has %d bytes, more than %d", len(b), MaxDocument)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return Refuse(CodeDocument, "", "not a valid document: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Refuse(CodeDocument, "", "there is something behind the document")
	}
	return nil
}

// checker collects the first thing that is wrong with a document.
type checker struct {
	what string
	err  error
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = Refuse(CodeDocument, "", "%s: %s", c.what, fmt.Sprintf(format, args...))
	}
}

func (c *checker) text(name string, limit int, values ...string) {
	for _, v := range values {
		switch {
		case len(v) > limit:
			c.fail("%s is longer than %d bytes", name, limit)
		case !utf8.ValidString(v) || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }):
			c.fail("%s holds control characters", name)
		}
	}
}

func (c *checker) count(name string, n, limit int) {
	if n > limit {
		c.fail("%d %s, more than %d", n, name, limit)
	}
}

func (c *checker) size(name string, n int64) {
	if n < 0 || n > maxBytes {
		c.fail("%s of %d bytes", name, n)
	}
}

func (c *checker) oneOf(name, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.fail("%s is %.40q, not one of %s", name, value, strings.Join(allowed, ", "))
	}
}

func (c *checker) identity(id Identity) {
	c.text("the identity", maxText, id.Vendor, id.Product, id.Serial, id.UUID, id.BoardSerial)
}

// Check tells what is wrong with a report: everything is bounded, and MAC
// addresses are canonical and different.
func (r Report) Check() error {
	c := &checker{what: "report"}
	c.oneOf("the format", r.Format, ReportFormat)
	c.identity(r.Identity)
	c.oneOf("the firmware mode", r.Firmware.Mode, "uefi", "bios")
	c.oneOf("the TPM", r.Firmware.TPM, "", "1.2", "2.0")
	c.text("the firmware", maxText, r.Firmware.Vendor, r.Firmware.Version)
	c.text("the processor", maxText, append([]string{r.CPU.Model}, r.CPU.Flags...)...)
	c.count("processor flags", len(r.CPU.Flags), maxItems)
	c.size("the memory", r.Memory)
	if r.CPU.Cores < 0 || r.CPU.Cores > 1<<16 {
		c.fail("%d processors", r.CPU.Cores)
	}
	c.count("disks", len(r.Disks), maxItems)
	for _, d := range r.Disks {
		c.disk(d)
	}
	c.nics(r.NICs)
	return c.err
}

func (c *checker) nics(nics []NIC) {
	c.count("network interfaces", len(nics), maxItems)
	seen := map[string]bool{}
	for _, n := range nics {
		c.text("a network interface", maxText, n.Name, n.Driver)
		if mac, err := ParseMAC(n.MAC); err != nil || string(mac) != n.MAC {
			c.fail("%.40q is no canonical MAC address", n.MAC)
		}
		if seen[n.MAC] {
			c.fail("two network interfaces have the MAC address %s", n.MAC)
		}
		seen[n.MAC] = true
		if n.Mbps < -1 || n.Mbps > 1e7 {
			c.fail("a network interface with %d Mbit/s", n.Mbps)
		}
	}
}

func (c *checker) disk(d Disk) {
	c.text("a disk", maxText, d.Name, d.Serial, d.WWN, d.Model, d.Transport, d.Busy)
	c.size("a disk", d.Size)
	if d.Sector < 0 || d.Sector > 1<<20 {
		c.fail("sectors of %d bytes", d.Sector)
	}
	c.count("signatures on one disk", len(d.Content), maxItems*4)
	for _, s := range d.Content {
		c.text("a signature", maxText, s.Type, s.Label, s.UUID)
		if s.Partition < 0 || s.Partition > 1<<16 {
			c.fail("partition number %d", s.Partition)
		}
	}
}

// Check tells what is wrong with a sign of life.
func (p Progress) Check() error {
	c := &checker{what: "progress"}
	c.oneOf("the stage", string(p.Stage), string(StageInventory), string(StageSelect), string(StageSanitize), string(StageWrite), string(StageSeed), string(StageReadBack), string(StageReceipt))
	c.size("what is done", p.Done)
	c.size("the total", p.Total)
	c.text("the note", maxText, p.Note)
	if math.IsNaN(p.Rate) || p.Rate < 0 || p.Rate > 1e15 {
		c.fail("a rate of %g", p.Rate)
	}
	return c.err
}

// Check tells what is wrong with a receipt as a document; whether it proves an
// install is for the ticket to say.
func (r Receipt) Check() error {
	c := &checker{what: "receipt"}
	c.oneOf("the format", r.Format, ReceiptFormat)
	c.ticketID(r.Ticket)
	c.identity(r.Identity)
	c.disk(r.Disk)
	c.size("the image", r.Bytes)
	c.text("the receipt", maxText, r.Node, r.DiskGUID)
	c.text("the receipt", maxLong, append([]string{r.Sanitized, r.Error}, r.Reasons...)...)
	c.text("a host key", maxLong, r.HostKeys...)
	c.count("reasons", len(r.Reasons), maxItems*4)
	c.count("host keys", len(r.HostKeys), maxItems)
	c.count("data disks", len(r.Data), maxItems)
	for _, d := range r.Data {
		c.text("a data disk", maxText, d.Name, d.Serial)
		c.oneOf("what was done with a data disk", d.Action, "kept", "wiped", "absent")
	}
	if r.Finished.Before(r.Started) {
		c.fail("it ends before it begins")
	}
	if r.Error == "" && (r.Index.IsZero() || r.Seed.IsZero() || r.Disk.ID() == "") {
		c.fail("it does not say what was written, and where")
	}
	return c.err
}

// Digest identifies a receipt: the same receipt sent again has the same one.
func (r Receipt) Digest() digest.Digest {
	b, err := json.Marshal(r)
	if err != nil { // times outside years 0 to 9999 cannot be written
		return digest.Digest{}
	}
	return digest.Of(b)
}

// ID is what a disk is recognised by: its serial number, else its WWN, else "".
func (d Disk) ID() string {
	if s := strings.TrimSpace(d.Serial); s != "" {
		return s
	}
	return strings.TrimSpace(d.WWN)
}

// Check tells what is wrong with what a node says when it is ready.
func (r Ready) Check() error {
	c := &checker{what: "ready"}
	c.text("it", maxText, r.Node, r.MachineID, r.Slot, r.RootHash)
	c.text("a host key", maxLong, r.HostKeys...)
	c.count("host keys", len(r.HostKeys), maxItems)
	if r.Node == "" {
		c.fail("it names no node")
	}
	return c.err
}

// Check tells what is wrong with a ticket, secret included. Whether it has
// expired is for a clock to say that can be trusted more than a machine's.
func (t Ticket) Check() error {
	c := &checker{what: "ticket"}
	c.ticketID(t.ID)
	if c.err != nil {
		return c.err
	}
	return t.CheckOrder()
}

func (c *checker) ticketID(id string) {
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != 32 || strings.ToLower(id) != id {
		c.fail("the ticket's ID is not 64 hex digits")
	}
}

// CheckOrder tells what is wrong with a ticket, its secret left aside.
func (t Ticket) CheckOrder() error {
	c := &checker{what: "ticket"}
	c.oneOf("the format", t.Format, TicketFormat)
	c.text("it", maxText, append([]string{t.Node, t.Cluster}, t.Overwrite...)...)
	c.text("the key", maxLong, t.Key)
	c.count("disks to overwrite", len(t.Overwrite), maxItems)
	c.count("data disks", len(t.Data), maxItems)
	c.oneOf("sanitize", string(t.Sanitize), append(t.Sanitize.Values(), string(SanitizeNone))...)
	switch {
	case t.Node == "" || t.Cluster == "":
		c.fail("it names no node or no cluster")
	case t.Index.IsZero() || t.Key == "":
		c.fail("it does not say which image, or who must have signed it")
	case t.System.IsZero():
		c.fail("it does not say which disk")
	}
	seen := map[string]bool{}
	for _, d := range t.Data {
		c.text("a data disk", maxText, d.Name)
		c.oneOf("the policy of a data disk", string(d.Policy), cluster.PolicyKeep.Values()...)
		if d.Name == "" || seen[d.Name] || d.Disk.IsZero() {
			c.fail("data disk %.40q is named twice, or does not say which disk", d.Name)
		}
		seen[d.Name] = true
	}
	return c.err
}
