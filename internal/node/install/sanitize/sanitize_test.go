package sanitize

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/slipway/slipway/internal/machine"
)

// fake is a disk with the commands that a test gives it.
type fake struct {
	log       []string
	noDiscard bool

	namespaces   int
	capabilities uint32
	fna          byte
	format       error
	states       []byte // of a sanitize, one for each time it is asked

	support uint16 // word 59 of IDENTIFY DEVICE
	refuse  error
	counts  []uint16
}

func (f *fake) Zero(off, n int64) error {
	f.log = append(f.log, fmt.Sprintf("zero %d+%d", off, n))
	return nil
}

func (f *fake) Discard(off, n int64) error {
	if f.noDiscard {
		return errors.New("operation not supported")
	}
	f.log = append(f.log, fmt.Sprintf("discard %d+%d", off, n))
	return nil
}

func (f *fake) Flush() error { return nil }

func (f *fake) Admin(c Command, data []byte) error {
	le := binary.LittleEndian
	switch {
	case c.Opcode == opIdentify && c.D10 == 1:
		le.PutUint32(data[328:], f.capabilities)
		data[524] = f.fna
	case c.Opcode == opIdentify && c.D10 == 2:
		for i := range f.namespaces {
			le.PutUint32(data[i*4:], uint32(i)+7)
		}
	case c.Opcode == opIdentify:
		data[26] = 3
	case c.Opcode == opFormat:
		f.log = append(f.log, fmt.Sprintf("format %d %#x", c.NSID, c.D10))
		return f.format
	case c.Opcode == opSanitize:
		f.log = append(f.log, fmt.Sprintf("sanitize %d", c.D10&7))
	case c.Opcode == opGetLog:
		data[2], f.states = f.states[0], f.states[1:]
	}
	return nil
}

func (f *fake) Pass(t Task, data []byte) (Answer, error) {
	switch {
	case t.Command == ataIdentify:
		binary.LittleEndian.PutUint16(data[59*2:], f.support)
		return Answer{}, nil
	case t.Feature == featureStatus:
		a := Answer{Count: f.counts[0]}
		f.counts = f.counts[1:]
		return a, nil
	}
	f.log = append(f.log, fmt.Sprintf("ata %#x %#x", t.Feature, t.LBA))
	return Answer{}, f.refuse
}

func TestWays(t *testing.T) {
	const all = "discard 0+1073741824;discard 1073741824+1024"
	const zeros = "zero 0+1073741824;zero 1073741824+1024"
	for name, tt := range map[string]struct {
		disk fake
		kind string
		how  machine.Sanitize
		did  string // what the disk was told
		says string
	}{
		"zero":                     {fake{}, "nvme", machine.SanitizeZero, zeros, "zeros were written"},
		"discard":                  {fake{}, "nvme", machine.SanitizeDiscard, all, "discarded"},
		"discard not supported":    {fake{noDiscard: true}, "", machine.SanitizeDiscard, zeros, "zeros were written"},
		"auto on virtio":           {fake{}, "", machine.SanitizeAuto, all, "discarded"},
		"NVMe block erase":         {fake{namespaces: 1, capabilities: 3, states: []byte{2, 2, 1}}, "nvme", machine.SanitizeAuto, "sanitize 2", "NVMe sanitize, block erase"},
		"NVMe crypto erase":        {fake{namespaces: 1, capabilities: 1, states: []byte{4}}, "nvme", machine.SanitizeAuto, "sanitize 4", "NVMe sanitize, crypto erase"},
		"NVMe sanitize fails":      {fake{namespaces: 1, capabilities: 2, states: []byte{2, 3}}, "nvme", machine.SanitizeAuto, "sanitize 2;format 7 0x203", "NVMe format, user data erase"},
		"NVMe format":              {fake{namespaces: 1}, "nvme", machine.SanitizeAuto, "format 7 0x203", "NVMe format, user data erase"},
		"NVMe format fails":        {fake{namespaces: 1, fna: 4, format: errors.New("no")}, "nvme", machine.SanitizeAuto, "format 7 0x203;format 7 0x403;" + all, "discarded"},
		"NVMe with two of them":    {fake{namespaces: 2, capabilities: 3}, "nvme", machine.SanitizeAuto, all, "discarded"},
		"ATA block erase":          {fake{support: 1<<12 | 1<<13 | 1<<15, counts: []uint16{1 << 14, 1 << 15}}, "ata", machine.SanitizeAuto, "ata 0x12 0x426b4572", "ATA sanitize, block erase"},
		"ATA crypto scramble":      {fake{support: 1<<12 | 1<<13, counts: []uint16{1 << 15}}, "ata", machine.SanitizeAuto, "ata 0x11 0x43727970", "ATA sanitize, crypto scramble"},
		"ATA without":              {fake{}, "ata", machine.SanitizeAuto, all, "discarded"},
		"ATA frozen":               {fake{support: 1<<12 | 1<<15, refuse: errors.New("ATA status 0x51")}, "ata", machine.SanitizeAuto, "ata 0x12 0x426b4572;" + all, "discarded"},
		"ATA ends without success": {fake{support: 1<<12 | 1<<15, counts: []uint16{0}}, "ata", machine.SanitizeAuto, "ata 0x12 0x426b4572;" + all, "discarded"},
	} {
		d := tt.disk
		r := Request{How: tt.how, Size: 1<<30 + 1024, Say: func(string) {}, Sleep: func(context.Context, time.Duration) error { return nil }}
		switch tt.kind {
		case "nvme":
			r.NVMe = &d
		case "ata":
			r.ATA = &d
		}
		says, err := Run(t.Context(), &d, r)
		if err != nil || !strings.Contains(says, tt.says) || strings.Join(d.log, ";") != tt.did {
			t.Errorf("%s: %q, %v; the disk was told %q, want %q", name, says, err, strings.Join(d.log, ";"), tt.did)
		}
	}
}

func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("ticket withdrawn"))
	d := &fake{namespaces: 1, capabilities: 2, states: []byte{2}}
	r := Request{How: machine.SanitizeAuto, Size: 1 << 30, NVMe: d, Say: func(string) {}, Sleep: func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }}
	if _, err := Run(ctx, d, r); err == nil || !strings.Contains(err.Error(), "ticket withdrawn") {
		t.Errorf("%v", err)
	}
	if _, err := Run(t.Context(), d, Request{How: "often"}); err == nil {
		t.Error("an unknown way was taken")
	}
}

// The kernel's structures have these sizes on 64-bit machines.
func TestLayouts(t *testing.T) {
	if n := unsafe.Sizeof(adminCommand{}); n != 72 {
		t.Errorf("struct nvme_admin_cmd has %d bytes", n)
	}
	if n := unsafe.Sizeof(sgIO{}); n != 88 {
		t.Errorf("struct sg_io_hdr has %d bytes", n)
	}
}

func TestPassThrough(t *testing.T) {
	c := passThrough(Task{Command: ataSanitize, Feature: featureBlock, LBA: 0x426B4572}, false)
	want := [16]byte{0x85, 7, 0x20, 0, 0x12, 0, 0, 0x42, 0x72, 0, 0x45, 0, 0x6b, 0, 0xb4}
	if c != want {
		t.Errorf("% x, want % x", c, want)
	}
	sense := make([]byte, 32)
	copy(sense, []byte{0x72, 1, 0, 0x1d, 0, 0, 0, 14, 9, 12, 1, 0, 0xc0, 0x01, 0, 0x34, 0, 0x12, 0, 0, 0, 0x50})
	a, err := registers(0, sense)
	if err != nil || a.Count != 0xc001 || a.LBA != 0x1234 {
		t.Errorf("%+v, %v", a, err)
	}
	sense[21] = 0x51
	if _, err := registers(0, sense); err == nil {
		t.Error("an error of the disk was passed over")
	}
	if _, err := registers(0, make([]byte, 32)); err == nil {
		t.Error("no sense data was taken for an answer")
	}
}
