package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Conversation is a socket of its own for packets from and to one peer.
//
// Its reads block a thread, on purpose: a protocol that waits for an answer to each
// packet, as TFTP does, spends its time on waking up, and the kernel wakes a thread
// in a system call sooner than the runtime wakes a goroutine.
type Conversation struct {
	fd  int
	out messages
}

// Converse opens a free port on the host's own address. A read waits for at most
// the given time.
func Converse(iface string, own netip.Addr, peer netip.AddrPort, wait time.Duration) (*Conversation, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a socket: %w", err)
	}
	c := &Conversation{fd: fd}
	err = errors.Join(
		unix.BindToDevice(fd, iface),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: own.As4()}),
		unix.Connect(fd, &unix.SockaddrInet4{Addr: peer.Addr().As4(), Port: int(peer.Port())}),
		c.Wait(wait),
	)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("opening a port for %s on %s: %w", peer, iface, err)
	}
	return c, nil
}

// Wait sets how long a read waits.
func (c *Conversation) Wait(d time.Duration) error {
	t := unix.NsecToTimeval(int64(d))
	return unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &t)
}

// Read waits for a packet. Its error is os.ErrDeadlineExceeded when none came in
// time, and net.ErrClosed after Stop.
func (c *Conversation) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(c.fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return 0, os.ErrDeadlineExceeded
		case err != nil:
			return 0, err
		case n == 0: // the end after Stop; an empty packet is as useless to all who ask here
			return 0, net.ErrClosed
		}
		return n, nil
	}
}

// Write sends packets, with one system call for all of them.
func (c *Conversation) Write(packets ...[]byte) error {
	if len(packets) == 1 {
		return c.write(packets[0])
	}
	if len(packets) > len(c.out.headers) {
		c.out = newMessages(len(packets))
	}
	for i, p := range packets {
		c.out.point(i, p)
	}
	for done := 0; done < len(packets); {
		n, err := c.out.send(c.fd, done, len(packets))
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}

func (c *Conversation) write(b []byte) error {
	for {
		_, err := unix.Write(c.fd, b)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// StopWith ends a waiting read, and all later ones, when ctx ends. The function
// that it returns undoes that and must be called before Close.
func (c *Conversation) StopWith(ctx context.Context) func() { return stopWith(ctx, c.fd) }

func stopWith(ctx context.Context, fd int) func() {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		unix.Shutdown(fd, unix.SHUT_RDWR) // says "not connected", and wakes the reader all the same
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// Close gives the port back; nobody may be reading.
func (c *Conversation) Close() { unix.Close(c.fd) }
