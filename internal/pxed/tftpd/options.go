package tftpd

import (
	"slices"
	"strconv"
	"time"
)

// terms are what a transfer has been agreed to be.
type terms struct {
	block    int           // bytes of data in a packet
	window   int           // packets that may be on their way
	timeout  time.Duration // without an answer before the window is sent again
	accepted []option      // for the OACK; empty means that there is none
}

// The terms without options, and the bounds of what may be asked for.
const (
	plainBlock   = 512
	leastBlock   = 8     // RFC 2348
	mostBlock    = 65464 // RFC 2348
	mostWindow   = 64    // RFC 7440 allows 65535; 64 full frames keep a link of 1 Gbit/s busy at 0.7 ms
	plainTimeout = time.Second
	overhead     = 20 + 8 + 4 // headers of IPv4, UDP and TFTP in every packet
)

// negotiate answers the options of a request for a file of the given size. An
// option with a value that makes no sense is left out, as if it were not known
// (RFC 2347). blksize is cut to what fits the interface, because option ROMs do
// not put fragments together again.
func negotiate(r request, size, mtu int) terms {
	t := terms{block: plainBlock, window: 1, timeout: plainTimeout}
	for _, o := range r.options {
		n, err := strconv.Atoi(o.value)
		if err != nil || t.has(o.name) { // RFC 2347: an option is given once
			continue
		}
		switch {
		case o.name == "blksize" && n >= leastBlock && n <= mostBlock:
			t.block = min(n, max(mtu-overhead, plainBlock))
			t.accept(o.name, t.block)
		case o.name == "tsize" && n >= 0:
			t.accept(o.name, size)
		case o.name == "timeout" && n >= 1 && n <= 255:
			t.timeout = time.Duration(n) * time.Second
			t.accept(o.name, n)
		case o.name == "windowsize" && n >= 1 && n <= 65535:
			t.window = min(n, mostWindow)
			t.accept(o.name, t.window)
		}
	}
	return t
}

func (t *terms) has(name string) bool {
	return slices.ContainsFunc(t.accepted, func(o option) bool { return o.name == name })
}

func (t *terms) accept(name string, value int) {
	t.accepted = append(t.accepted, option{name, strconv.Itoa(value)})
}
