package listen

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"runtime"
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

// packet is datagram i as it was received; ok is false when it has no sender.
func (m *messages) packet(i int) (p Packet, ok bool) {
	h, name := &m.headers[i], &m.names[i]
	if h.Namelen != unix.SizeofSockaddrInet4 || name.Family != unix.AF_INET {
		return Packet{}, false
	}
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&name.Port))[:])
	return Packet{netip.AddrPortFrom(netip.AddrFrom4(name.Addr), port), m.buffers[i][:h.length]}, true
}

// receive waits for a datagram and takes what else is there.
func (m *messages) receive(fd int) (int, error) {
	for {
		for i := range m.headers { // the kernel has written the last sender's over it
			m.headers[i].Namelen = unix.SizeofSockaddrInet4
		}
		n, err := m.call(unix.SYS_RECVMMSG, fd, len(m.headers), unix.MSG_WAITFORONE)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// send sends the first n datagrams, or as many as it can: the error is that of the
// first one that it could not.
func (m *messages) send(fd, n int) (int, error) {
	done := 0
	for done < n {
		rest := messages{headers: m.headers[done:n]}
		sent, err := rest.call(unix.SYS_SENDMMSG, fd, n-done, 0)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return done, err
		}
		done += sent
	}
	runtime.KeepAlive(m)
	return done, nil
}

func (m *messages) call(number uintptr, fd, n int, flags uintptr) (int, error) {
	done, _, errno := unix.Syscall6(number, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(m.headers))), uintptr(n), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(done), nil
}
