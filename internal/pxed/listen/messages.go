package listen

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// header is the kernel's struct mmsghdr: one datagram of several.
type header struct {
	unix.Msghdr
	length uint32 // bytes, written by the kernel
}

// messages are datagrams as recvmmsg(2) and sendmmsg(2) want them. What they point
// to is held here, so that it stays where it is while the kernel works on it.
type messages struct {
	headers []header
	vectors []unix.Iovec
	names   []unix.RawSockaddrInet4
	buffers [][]byte
}

// newMessages has no senders or receivers: the socket is connected.
func newMessages(n int) messages {
	m := messages{headers: make([]header, n), vectors: make([]unix.Iovec, n), buffers: make([][]byte, n)}
	for i := range n {
		m.headers[i].Iov = &m.vectors[i]
		m.headers[i].SetIovlen(1)
	}
	return m
}

// newAddressed has a sender or receiver for each datagram.
func newAddressed(n int) messages {
	m := newMessages(n)
	m.names = make([]unix.RawSockaddrInet4, n)
	for i := range n {
		m.headers[i].Name = (*byte)(unsafe.Pointer(&m.names[i]))
		m.headers[i].Namelen = unix.SizeofSockaddrInet4
	}
	return m
}

// point makes datagram i lie in the buffer.
func (m *messages) point(i int, buffer []byte) {
	m.buffers[i] = buffer
	m.vectors[i].Base = unsafe.SliceData(buffer)
	m.vectors[i].SetLen(len(buffer))
}

// address makes datagram i the packet, to be sent.
func (m *messages) address(i int, p Packet) {
	m.point(i, p.Data)
	name := &m.names[i]
	name.Family, name.Addr = unix.AF_INET, p.Peer.Addr().As4()
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&name.Port))[:], p.Peer.Port())
}

// packet is datagram i as it was received.
func (m *messages) packet(i int) Packet {
	name := &m.names[i]
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&name.Port))[:])
	return Packet{netip.AddrPortFrom(netip.AddrFrom4(name.Addr), port), m.buffers[i][:m.headers[i].length]}
}

// receive takes what is there.
func (m *messages) receive(fd int) (int, error) {
	return atOnce(unix.SYS_RECVMMSG, fd, m.headers)
}

// sendNow sends datagrams, as many as it can without waiting: the error is that of
// the first one, when not even that could be sent.
func (m *messages) sendNow(fd, n int) (int, error) {
	return atOnce(unix.SYS_SENDMMSG, fd, m.headers[:n])
}

// atOnce makes a call that does not wait. The runtime is not told of it: it would
// wake its monitor, on a thread of its own, to watch how long the call takes.
func atOnce(number uintptr, fd int, headers []header) (int, error) {
	for {
		done, _, errno := unix.RawSyscall6(number, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(headers))), uintptr(len(headers)), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(done), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// send is sendNow from a datagram on, and waits.
func (m *messages) send(fd, from, to int) (int, error) {
	headers := m.headers[from:to]
	for {
		done, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(headers))), uintptr(len(headers)), 0, 0, 0)
		switch errno {
		case 0:
			return int(done), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
