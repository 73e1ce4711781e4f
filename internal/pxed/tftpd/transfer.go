package tftpd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
)

// errProbe is how a client ends that only wanted to know the size: it answers the
// OACK with an ERROR. OVMF does so before every real read.
var errProbe = errors.New("the client only asked for the size")

// patience is how long a client may be silent before it is given up.
const patience = 20 * time.Second

// wire is the way to the client. A read waits for at most terms.timeout.
type wire interface {
	Read(b []byte) (int, error)
	Write(packets ...[]byte) error
}

// sender sends one file.
type sender struct {
	conn    wire
	terms   terms
	content []byte
	blocks  int // of data; the last is shorter than terms.block, possibly empty
	memory  []byte
	packets [][]byte // in memory, of one window
	heard   []byte   // for what the client sends
	resent  int
}

func newSender(conn wire, t terms, content []byte) *sender {
	return &sender{
		conn: conn, terms: t, content: content, blocks: len(content)/t.block + 1,
		memory: make([]byte, t.window*(t.block+dataHeader)), packets: make([][]byte, t.window), heard: make([]byte, maxRequest),
	}
}

const dataHeader = 4

// send runs the transfer to its end.
func (s *sender) send(ctx context.Context) error {
	if len(s.terms.accepted) > 0 {
		if err := s.offer(ctx); err != nil {
			return err
		}
	}
	for acked := 0; acked < s.blocks; {
		n, err := s.window(ctx, acked)
		if err != nil {
			return err
		}
		acked += n
	}
	return nil
}

// offer sends the OACK until block 0 is acknowledged.
func (s *sender) offer(ctx context.Context) error {
	packet := packOAck(s.terms.accepted)
	give := time.Now().Add(patience)
	for first := true; ; first = false {
		if !first {
			s.resent++
		}
		if err := s.conn.Write(packet); err != nil {
			return err
		}
		a, err := s.answer(ctx, give, time.Now().Add(s.terms.timeout))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case err != nil:
			return err
		case a.op == opError && a.code == codeOptions:
			return errProbe
		case a.op == opError:
			return fmt.Errorf("the client gave up before the first block: %s (%d)", a.text, a.code)
		case a.block == 0:
			return nil
		}
	}
}

// window sends the blocks after the acknowledged ones, as many as may be on their
// way, until at least one more is acknowledged; it returns how many are.
//
// A repeated acknowledgement of the last window means, with a window of one, only
// that a packet came twice: answering it would double every packet from then on
// (RFC 1123 section 4.2.3.1). With a larger one it means that the first block of
// this window was lost (RFC 7440 section 4); it is answered once.
func (s *sender) window(ctx context.Context, acked int) (int, error) {
	n := min(s.terms.window, s.blocks-acked)
	give := time.Now().Add(patience)
	repeat := s.terms.window > 1
	for first := true; ; first = false {
		if !first {
			s.resent += n
		}
		if err := s.transmit(acked+1, n); err != nil {
			return 0, err
		}
		got, err := s.await(ctx, give, acked, n, repeat)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			repeat = s.terms.window > 1
		case err != nil:
			return 0, err
		case got > 0:
			return got, nil
		default:
			repeat = false
		}
	}
}

// await waits for an acknowledgement of up to n blocks after acked. With repeat it
// returns 0 for one of acked itself. What else arrives does not prolong the wait.
func (s *sender) await(ctx context.Context, give time.Time, acked, n int, repeat bool) (int, error) {
	until := time.Now().Add(s.terms.timeout)
	for {
		a, err := s.answer(ctx, give, until)
		switch {
		case err != nil:
			return 0, err
		case a.op == opError:
			return 0, fmt.Errorf("the client gave up after %d of %d blocks: %s (%d)", acked, s.blocks, a.text, a.code)
		}
		got := int(a.block - uint16(acked)) // block numbers wrap at 65536
		if got >= 1 && got <= n || got == 0 && repeat {
			return got, nil
		}
	}
}

// transmit sends n blocks from the given one on.
func (s *sender) transmit(from, n int) error {
	size := s.terms.block + dataHeader
	for i := range n {
		p := s.memory[i*size : (i+1)*size]
		binary.BigEndian.PutUint16(p, opData)
		binary.BigEndian.PutUint16(p[2:], uint16(from+i))
		start := (from + i - 1) * s.terms.block
		l := copy(p[dataHeader:], s.content[start:min(start+s.terms.block, len(s.content))])
		s.packets[i] = p[:dataHeader+l]
	}
	return s.conn.Write(s.packets[:n]...)
}

// answer waits for the client, until the given time or not much longer. What is not
// an answer is passed over. After give, the client is given up.
func (s *sender) answer(ctx context.Context, give, until time.Time) (answer, error) {
	for {
		switch now := time.Now(); {
		case now.After(give):
			return answer{}, fmt.Errorf("no answer for %s", patience)
		case now.After(until):
			return answer{}, os.ErrDeadlineExceeded
		}
		n, err := s.conn.Read(s.heard)
		if ctx.Err() != nil {
			return answer{}, context.Cause(ctx)
		}
		if err != nil {
			return answer{}, err
		}
		if a, err := parseAnswer(s.heard[:n]); err == nil {
			return a, nil
		}
	}
}
