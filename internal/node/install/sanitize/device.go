package sanitize

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// Device sends commands to a disk through its file descriptor.
type Device struct{ Fd uintptr }

// adminCommand is struct nvme_admin_cmd of linux/nvme_ioctl.h.
type adminCommand struct {
	opcode, flags uint8
	_             uint16
	nsid          uint32
	_, _          uint32
	metadata      uint64
	addr          uint64
	metadataLen   uint32
	dataLen       uint32
	cdw           [6]uint32 // 10 to 15
	timeout       uint32    // milliseconds
	result        uint32
}

// ioctlAdmin is NVME_IOCTL_ADMIN_CMD: _IOWR('N', 0x41, struct nvme_admin_cmd).
const ioctlAdmin = 3<<30 | 72<<16 | 'N'<<8 | 0x41

// Admin implements NVMe.
func (d Device) Admin(c Command, data []byte) error {
	cmd := adminCommand{opcode: c.Opcode, nsid: c.NSID, dataLen: uint32(len(data)), timeout: uint32(c.Timeout.Milliseconds())}
	cmd.cdw[0], cmd.cdw[1] = c.D10, c.D11
	var pin runtime.Pinner
	defer pin.Unpin()
	if len(data) > 0 {
		pin.Pin(&data[0])
		cmd.addr = uint64(uintptr(unsafe.Pointer(&data[0])))
	}
	status, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.Fd, ioctlAdmin, uintptr(unsafe.Pointer(&cmd)))
	switch {
	case errno != 0:
		return errno
	case status != 0:
		return fmt.Errorf("NVMe status 0x%x", status)
	}
	return nil
}

// sgIO is struct sg_io_hdr of scsi/sg.h.
type sgIO struct {
	interfaceID    int32
	direction      int32
	cmdLen         uint8
	maxSense       uint8
	_              uint16
	dataLen        uint32
	data           uint64
	cmd            uint64
	sense          uint64
	timeout        uint32 // milliseconds
	flags          uint32
	packID         int32
	_              [4]byte
	_              uint64
	status         uint8
	maskedStatus   uint8
	msgStatus      uint8
	senseWritten   uint8
	hostStatus     uint16
	driverStatus   uint16
	resid          int32
	duration, info uint32
	_              [4]byte
}

const (
	ioctlSG      = 0x2285 // SG_IO
	sgNoData     = -1
	sgFromDevice = -3
)

// Pass implements ATA with ATA PASS-THROUGH(16) (SAT-4, 12.2.3).
func (d Device) Pass(t Task, data []byte) (Answer, error) {
	if t.Write {
		return Answer{}, errors.New("writing to the disk this way is not supported")
	}
	cmd := passThrough(t, len(data) > 0)
	var sense [32]byte
	h := sgIO{interfaceID: 'S', direction: sgNoData, cmdLen: uint8(len(cmd)), maxSense: uint8(len(sense)), timeout: uint32(t.Timeout.Milliseconds())}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&cmd[0])
	pin.Pin(&sense[0])
	h.cmd, h.sense = uint64(uintptr(unsafe.Pointer(&cmd[0]))), uint64(uintptr(unsafe.Pointer(&sense[0])))
	if len(data) > 0 {
		pin.Pin(&data[0])
		h.direction, h.dataLen, h.data = sgFromDevice, uint32(len(data)), uint64(uintptr(unsafe.Pointer(&data[0])))
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.Fd, ioctlSG, uintptr(unsafe.Pointer(&h))); errno != 0 {
		return Answer{}, errno
	}
	return registers(h.hostStatus, sense[:])
}

// passThrough is the command block. CK_COND asks for the registers in the sense data.
func passThrough(t Task, reads bool) [16]byte {
	const pioIn, nonData, extended, checkCondition = 4 << 1, 3 << 1, 1, 0x20
	c := [16]byte{0: 0x85, 1: nonData | extended, 2: checkCondition, 14: t.Command}
	if reads {
		c[1], c[2] = pioIn, checkCondition|0x0e // from the device, blocks, in the count
	}
	c[3], c[4] = byte(t.Feature>>8), byte(t.Feature)
	c[5], c[6] = byte(t.Count>>8), byte(t.Count)
	c[7], c[8] = byte(t.LBA>>24), byte(t.LBA)
	c[9], c[10] = byte(t.LBA>>32), byte(t.LBA>>8)
	c[11], c[12] = byte(t.LBA>>40), byte(t.LBA>>16)
	return c
}

// registers reads the ATA Status Return descriptor out of the sense data.
func registers(host uint16, sense []byte) (Answer, error) {
	const descriptorFormat, statusReturn, failed = 0x72, 0x09, 0x21 // failed: ERR or DF
	switch {
	case host != 0:
		return Answer{}, fmt.Errorf("the disk's controller reports status 0x%x", host)
	case sense[0]&0x7f != descriptorFormat || sense[8] != statusReturn:
		return Answer{}, errors.New("the disk does not take ATA commands")
	}
	r := sense[8:]
	if status := r[13]; status&failed != 0 {
		return Answer{}, fmt.Errorf("ATA status 0x%02x, error 0x%02x", status, r[3])
	}
	a := Answer{Count: binary.BigEndian.Uint16([]byte{r[4], r[5]})}
	a.LBA = uint64(r[7]) | uint64(r[9])<<8 | uint64(r[11])<<16 | uint64(r[6])<<24 | uint64(r[8])<<32 | uint64(r[10])<<40
	return a, nil
}
