package httpd

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of what one address may ask for: a burst, and so many a second after it.
// A machine that installs sends a report, a ticket, a seed, a receipt, and one
// progress a second; one in a boot loop asks for a script every few seconds.
const (
	burst      = 40
	perSecond  = 10
	maxClients = 4096 // addresses that are remembered
)

// limiter is a token bucket for each client address. When it cannot remember
// more, it forgets those whose bucket is full anyway; if there are none the new
// one shares a bucket with all others that do not fit.
type limiter struct {
	now func() time.Time

	mu      sync.Mutex
	buckets map[netip.Addr]*bucket
	rest    bucket
}

type bucket struct {
	spent float64
	at    time.Time
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, buckets: map[netip.Addr]*bucket{}}
}

// allow reports whether the address may ask now, and counts it.
func (l *limiter) allow(from netip.Addr) bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets[from]
	if !ok {
		b = l.add(from, now)
	}
	b.drain(now)
	if b.spent+1 > burst {
		return false
	}
	b.spent++
	return true
}

func (l *limiter) add(from netip.Addr, now time.Time) *bucket {
	if len(l.buckets) >= maxClients {
		for a, b := range l.buckets {
			if b.drain(now); b.spent == 0 {
				delete(l.buckets, a)
			}
		}
	}
	if len(l.buckets) >= maxClients {
		return &l.rest
	}
	b := &bucket{at: now}
	l.buckets[from] = b
	return b
}

func (b *bucket) drain(now time.Time) {
	b.spent = max(0, b.spent-now.Sub(b.at).Seconds()*perSecond)
	b.at = now
}
