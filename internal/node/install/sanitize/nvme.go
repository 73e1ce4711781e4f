package sanitize

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// NVMe is the admin queue of an NVMe controller and namespace.
type NVMe interface {
	// Admin sends an admin command; data is filled by commands that read.
	Admin(c Command, data []byte) error
}

// Command is an NVMe admin command, as far as it is used here.
type Command struct {
	Opcode  uint8
	NSID    uint32
	D10     uint32 // command dwords 10 to 12
	D11     uint32
	Timeout time.Duration
}

// Opcodes and log pages of the NVM Express base specification 2.0, figure 138 and
// section 5.16.1.
const (
	opIdentify = 0x06
	opGetLog   = 0x02
	opFormat   = 0x80
	opSanitize = 0x84

	logSanitize = 0x81
	allNS       = 0xffffffff
)

// nvme destroys the content by the controller's own commands: Sanitize, which also
// reaches blocks that were replaced, else Format with secure erase. Both go over
// the whole controller; one that has several namespaces is left alone, for another
// of them may be a data disk.
func nvme(ctx context.Context, d NVMe, say func(string), sleep func(context.Context, time.Duration) error) (string, error) {
	id := make([]byte, 4096)
	if err := d.Admin(Command{Opcode: opIdentify, D10: 1, Timeout: time.Minute}, id); err != nil {
		return "", fmt.Errorf("identifying the controller: %w", err)
	}
	ids, err := namespaces(d)
	if err != nil {
		return "", fmt.Errorf("listing the namespaces: %w", err)
	}
	if len(ids) != 1 {
		return "", fmt.Errorf("the controller has %d namespaces", len(ids))
	}
	done, err := nvmeSanitize(ctx, d, binary.LittleEndian.Uint32(id[328:]), say, sleep)
	if err == nil {
		return done, nil
	}
	say(fmt.Sprintf("NVMe sanitize: %v", err))
	return nvmeFormat(d, ids[0], id[524], say)
}

// namespaces lists the active namespaces (identify, CNS 2).
func namespaces(d NVMe) ([]uint32, error) {
	list := make([]byte, 4096)
	if err := d.Admin(Command{Opcode: opIdentify, D10: 2, Timeout: time.Minute}, list); err != nil {
		return nil, err
	}
	var out []uint32
	for i := 0; i < len(list); i += 4 {
		if id := binary.LittleEndian.Uint32(list[i:]); id != 0 {
			out = append(out, id)
		}
	}
	return out, nil
}

// sanitizeLimit bounds a sanitize; drives take seconds for crypto erase and
// minutes for block erase.
const sanitizeLimit = 3 * time.Hour

func nvmeSanitize(ctx context.Context, d NVMe, capabilities uint32, say func(string), sleep func(context.Context, time.Duration) error) (string, error) {
	const cryptoErase, blockErase = 4, 2 // sanitize actions
	action, name := uint32(0), ""
	switch {
	case capabilities&2 != 0:
		action, name = blockErase, "block erase"
	case capabilities&1 != 0:
		action, name = cryptoErase, "crypto erase"
	default:
		return "", errors.New("not supported")
	}
	// AUSE: a drive whose sanitize failed may be written again.
	const unrestricted = 1 << 3
	if err := d.Admin(Command{Opcode: opSanitize, D10: action | unrestricted, Timeout: time.Minute}, nil); err != nil {
		return "", err
	}
	say("the drive erases itself (NVMe sanitize, " + name + ")")
	const step = 2 * time.Second
	for waited := time.Duration(0); waited < sanitizeLimit; waited += step {
		if err := sleep(ctx, step); err != nil {
			return "", err
		}
		page := make([]byte, 512)
		err := d.Admin(Command{Opcode: opGetLog, NSID: allNS, D10: logSanitize | (512/4-1)<<16, Timeout: time.Minute}, page)
		if err != nil {
			return "", fmt.Errorf("asking how far it is: %w", err)
		}
		switch status := page[2] & 7; status {
		case 1, 4: // done; done, with blocks that could not be deallocated
			return "NVMe sanitize, " + name, nil
		case 2: // under way
			if progress := binary.LittleEndian.Uint16(page); waited%(30*step) == 0 {
				say(fmt.Sprintf("NVMe sanitize: %d %%", int(progress)*100/65536))
			}
		default:
			return "", fmt.Errorf("it failed with status %d", status)
		}
	}
	return "", fmt.Errorf("not done within %s", sanitizeLimit)
}

// nvmeFormat formats with the sector size that the namespace has.
func nvmeFormat(d NVMe, namespace uint32, fna byte, say func(string)) (string, error) {
	ns := make([]byte, 4096)
	if err := d.Admin(Command{Opcode: opIdentify, NSID: namespace, Timeout: time.Minute}, ns); err != nil {
		return "", fmt.Errorf("identifying the namespace: %w", err)
	}
	format := uint32(ns[26]&0xf) | uint32(ns[26]>>5&3)<<12
	settings := []struct {
		erase uint32
		name  string
	}{{1, "user data erase"}, {2, "crypto erase"}}
	if fna&4 == 0 {
		settings = settings[:1] // crypto erase is not supported
	}
	say("the drive erases itself (NVMe format)")
	var err error
	for _, s := range settings {
		if err = d.Admin(Command{Opcode: opFormat, NSID: namespace, D10: format | s.erase<<9, Timeout: 30 * time.Minute}, nil); err == nil {
			return "NVMe format, " + s.name, nil
		}
	}
	return "", fmt.Errorf("NVMe format: %w", err)
}
