package tftpd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Operations (RFC 1350 section 5, RFC 2347).
const (
	opRead  = 1
	opWrite = 2
	opData  = 3
	opAck   = 4
	opError = 5
	opOAck  = 6
)

// Error codes (RFC 1350 appendix, RFC 2347).
const (
	codeUndefined = 0
	codeNotFound  = 1
	codeAccess    = 2
	codeIllegal   = 4
	codeOptions   = 8 // in an ERROR of a client: it does not want the options, which is how tsize is probed
)

// request is an RRQ. Options keep their order; names are in lower case (RFC 2347:
// case does not matter).
type request struct {
	name    string
	options []option
}

type option struct{ name, value string }

// errWrite is a request to write, which nobody may.
var errWrite = errors.New("this server only reads")

// maxRequest is the largest request that RFC 2347 allows.
const maxRequest = 512

// parseRequest reads the first packet of a transfer.
func parseRequest(b []byte) (request, error) {
	if len(b) < 2 || len(b) > maxRequest {
		return request{}, fmt.Errorf("%d bytes are no request", len(b))
	}
	switch op := binary.BigEndian.Uint16(b); op {
	case opRead:
	case opWrite:
		return request{}, errWrite
	default:
		return request{}, fmt.Errorf("operation %d does not start a transfer", op)
	}
	if b[len(b)-1] != 0 {
		return request{}, errors.New("the request is cut off")
	}
	fields := strings.Split(string(b[2:len(b)-1]), "\x00")
	if len(fields) < 2 || fields[0] == "" {
		return request{}, errors.New("the request names no file or no mode")
	}
	if !strings.EqualFold(fields[1], "octet") {
		return request{}, fmt.Errorf("mode %q would damage a boot loader: ask in mode octet (binary)", fields[1])
	}
	r := request{name: fields[0]}
	for rest := fields[2:]; len(rest) >= 2; rest = rest[2:] {
		r.options = append(r.options, option{strings.ToLower(rest[0]), rest[1]})
	}
	return r, nil
}

func packError(code uint16, text string) []byte {
	b := binary.BigEndian.AppendUint16(nil, opError)
	b = binary.BigEndian.AppendUint16(b, code)
	return append(append(b, text...), 0)
}

func packOAck(accepted []option) []byte {
	b := binary.BigEndian.AppendUint16(nil, opOAck)
	for _, o := range accepted {
		b = append(append(b, o.name...), 0)
		b = append(append(b, o.value...), 0)
	}
	return b
}

// answer is what a client sends during a transfer.
type answer struct {
	op    uint16
	block uint16 // of an ACK
	code  uint16 // of an ERROR
	text  string // of an ERROR
}

func parseAnswer(b []byte) (answer, error) {
	if len(b) < 4 {
		return answer{}, fmt.Errorf("%d bytes are no answer", len(b))
	}
	a := answer{op: binary.BigEndian.Uint16(b)}
	switch a.op {
	case opAck:
		a.block = binary.BigEndian.Uint16(b[2:])
	case opError:
		a.code = binary.BigEndian.Uint16(b[2:])
		text, _, _ := bytes.Cut(b[4:], []byte{0})
		a.text = strings.ToValidUTF8(string(text), "?")
	default:
		return answer{}, fmt.Errorf("operation %d is not an answer", a.op)
	}
	return a, nil
}
