package sanitize

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ATA passes commands to a disk behind a SCSI translation (SAT-4).
type ATA interface {
	// Pass sends a command; data is filled by those that read. It returns the
	// LBA and count that come back, which hold the state of a sanitize.
	Pass(t Task, data []byte) (Answer, error)
}

// Task is an ATA command (ACS-4).
type Task struct {
	Command byte
	Feature uint16
	Count   uint16
	LBA     uint64
	Write   bool // data goes to the disk
	Timeout time.Duration
}

// Answer is what a command leaves in the registers.
type Answer struct {
	Count uint16
	LBA   uint64
}

// Commands of ACS-4: IDENTIFY DEVICE (7.13), SANITIZE DEVICE (7.36).
const (
	ataIdentify = 0xec
	ataSanitize = 0xb4

	featureStatus = 0x00
	featureCrypto = 0x11
	featureBlock  = 0x12
)

// ata destroys the content with SANITIZE DEVICE. The older SECURITY ERASE UNIT is
// not used: it sets a password first, and a disk that loses power meanwhile stays
// locked; firmware mostly freezes it before a system starts, anyway.
func ata(ctx context.Context, d ATA, say func(string), sleep func(context.Context, time.Duration) error) (string, error) {
	id := make([]byte, 512)
	if _, err := d.Pass(Task{Command: ataIdentify, Count: 1, Timeout: 15 * time.Second}, id); err != nil {
		return "", fmt.Errorf("identifying the disk: %w", err)
	}
	support := binary.LittleEndian.Uint16(id[59*2:])
	const sanitize, crypto, block = 1 << 12, 1 << 13, 1 << 15
	start, name := Task{Command: ataSanitize, Timeout: time.Minute}, ""
	switch {
	case support&sanitize == 0:
		return "", errors.New("ATA sanitize is not supported")
	case support&block != 0:
		start.Feature, start.LBA, name = featureBlock, 0x426B4572, "block erase" // "BkEr"
	case support&crypto != 0:
		start.Feature, start.LBA, name = featureCrypto, 0x43727970, "crypto scramble" // "Cryp"
	default:
		return "", errors.New("ATA sanitize has neither block erase nor crypto scramble")
	}
	if _, err := d.Pass(start, nil); err != nil {
		return "", fmt.Errorf("ATA sanitize: %w", err)
	}
	say("the disk erases itself (ATA sanitize, " + name + ")")
	return awaitATA(ctx, d, "ATA sanitize, "+name, say, sleep)
}

func awaitATA(ctx context.Context, d ATA, what string, say func(string), sleep func(context.Context, time.Duration) error) (string, error) {
	const step = 2 * time.Second
	for waited := time.Duration(0); waited < sanitizeLimit; waited += step {
		if err := sleep(ctx, step); err != nil {
			return "", err
		}
		a, err := d.Pass(Task{Command: ataSanitize, Feature: featureStatus, Timeout: time.Minute}, nil)
		if err != nil {
			return "", fmt.Errorf("asking how far it is: %w", err)
		}
		const completed, busy = 1 << 15, 1 << 14
		switch {
		case a.Count&completed != 0:
			return what, nil
		case a.Count&busy == 0:
			return "", errors.New("it ended without success")
		case waited%(30*step) == 0:
			say(fmt.Sprintf("%s: %d %%", what, int(a.LBA&0xffff)*100/65536))
		}
	}
	return "", fmt.Errorf("not done within %s", sanitizeLimit)
}
