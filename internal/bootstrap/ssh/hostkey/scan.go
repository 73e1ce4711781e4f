package hostkey

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/slipway/slipway/internal/diag"
)

// scanLimit bounds one question for a key. A node under emulation takes seconds.
const scanLimit = 30 * time.Second

// Scan asks whoever answers at an address (host:port) for its host keys, one
// connection for each kind, and logs in to nothing. The keys prove nothing until
// somebody has compared their fingerprints with the node's console.
func Scan(ctx context.Context, address string) ([]string, error) {
	var keys []ssh.PublicKey
	var last error
	for _, kind := range []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoRSASHA512} {
		key, err := offered(ctx, address, kind)
		switch {
		case key != nil:
			keys = append(keys, key)
		case errors.Is(err, errSilent):
			return nil, diag.WithHint(err, "is the node switched on, and is the address right? its console shows both")
		default:
			last = err
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no host key of a usable kind: %w", address, last)
	}
	var out []string
	for _, key := range sorted(keys) {
		out = append(out, line(key))
	}
	return out, nil
}

var (
	errSilent = errors.New("no answer")
	errSeen   = errors.New("the key was seen")
)

func offered(ctx context.Context, address, kind string) (ssh.PublicKey, error) {
	ctx, cancel := context.WithTimeout(ctx, scanLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", address, errSilent, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var seen ssh.PublicKey
	_, _, _, err = ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		HostKeyAlgorithms: []string{kind},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			seen = key
			return errSeen
		},
	})
	if seen == nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w within %s", address, errSilent, scanLimit)
	}
	return seen, err
}
