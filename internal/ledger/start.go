package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/canonical/go-dqlite"
	"github.com/canonical/go-dqlite/app"
	"github.com/canonical/go-dqlite/client"
	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/ledger/sharedkey"
)

// Files of go-dqlite's package app in a member's directory.
const (
	infoFile    = "info.yaml"    // this member: address, ID, role
	membersFile = "cluster.yaml" // all members, as far as this one knows
	moveFile    = "move"         // ours: the address that this member is about to take
)

// start starts the member under the address of the options.
func (l *Ledger) start(ctx context.Context, o Options) (*app.App, error) {
	if err := checkAddresses(o); err != nil {
		return nil, err
	}
	if err := finishMove(o.Dir); err != nil {
		return nil, err
	}
	have, err := ownAddress(o.Dir)
	switch {
	case err != nil:
		return nil, err
	case o.Address == "" && have == "":
		return app.New(o.Dir, l.options(app.WithAddress(localAddress(o.Dir)))...)
	case o.Address == "" && local(have):
		return app.New(o.Dir, l.options()...)
	case o.Address != "" && have == "" && len(o.Join) == 0, o.Address != "" && have != "" && have != o.Address:
		if err := l.move(ctx, o, have); err != nil {
			return nil, err
		}
	}
	key := o.Key
	if key == "" {
		key = filepath.Join(o.Dir, KeyName)
	}
	listen, dial, err := sharedkey.TLS(key, len(o.Join) == 0)
	if err != nil {
		return nil, err
	}
	l.dial = client.DialFuncWithTLS(client.DefaultDialFunc, dial)
	options := []app.Option{app.WithTLS(listen, dial)}
	if o.Address != "" {
		options = append(options, app.WithAddress(o.Address))
	}
	if have == "" && len(o.Join) > 0 {
		options = append(options, app.WithCluster(o.Join))
	}
	a, err := app.New(o.Dir, l.options(options...)...)
	if err != nil {
		return nil, fmt.Errorf("starting member %s: %w", o.Address, err)
	}
	return a, nil
}

func (l *Ledger) options(more ...app.Option) []app.Option {
	return append(more, app.WithLogFunc(logger(l.log)), app.WithRolesAdjustmentFrequency(5*time.Second))
}

func checkAddresses(o Options) error {
	if o.Address == "" && len(o.Join) > 0 {
		return errors.New("to join a ledger, this member needs an address that the others reach it by")
	}
	for _, a := range append([]string{o.Address}, o.Join...) {
		if a == "" {
			continue
		}
		host, port, err := net.SplitHostPort(a)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
			return fmt.Errorf("not an address of a member: %q (want host:port)", a)
		}
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			return fmt.Errorf("%s is not an address that others can reach", a)
		}
	}
	return nil
}

// localAddress is that of a member without others: an abstract Unix socket, which
// no other machine can reach and which takes no port.
func localAddress(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		full = dir
	}
	return fmt.Sprintf("@slipway-ledger-%x", sha256.Sum256([]byte(full)))[:48]
}

func local(address string) bool { return strings.HasPrefix(address, "@") }

// ownAddress reads the address that the member has had so far; "" for a new one.
func ownAddress(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, infoFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	for _, line := range strings.Split(string(b), "\n") {
		if value, found := strings.CutPrefix(line, "Address: "); found {
			return strings.Trim(value, `'"`), nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%s names no address", infoFile)
	}
	return "", err
}

// move gives the only member a new address. The address is part of Raft's
// configuration, so it is changed in the log while nothing runs. The member also
// gets a new ID: all first members are born with the same one, and dqlite derives
// a machine-wide socket name from it.
func (l *Ledger) move(ctx context.Context, o Options, have string) error {
	if !local(have) && have != "" {
		return diag.WithHint(fmt.Errorf("the member in %s is known to others as %s and cannot become %s", o.Dir, have, o.Address),
			"remove it from the ledger, then join with an empty directory")
	}
	if have == "" {
		have = localAddress(o.Dir)
	}
	a, err := app.New(o.Dir, l.options(app.WithAddress(have))...)
	if err != nil {
		return err
	}
	err = a.Ready(ctx)
	if err := errors.Join(err, a.Close()); err != nil {
		return fmt.Errorf("starting alone before moving to %s: %w", o.Address, err)
	}
	if err := renameio.WriteFile(filepath.Join(o.Dir, moveFile), fmt.Appendf(nil, "%d %s", dqlite.GenerateID(o.Address), o.Address), 0o600); err != nil {
		return err
	}
	return finishMove(o.Dir)
}

// finishMove does what the move file says, also after it was interrupted; doing
// it twice is as good as once.
func finishMove(dir string) error {
	path := filepath.Join(dir, moveFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	number, address, _ := strings.Cut(string(b), " ")
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	self := client.NodeInfo{ID: id, Address: address, Role: client.Voter}
	if err := dqlite.ReconfigureMembershipExt(dir, []client.NodeInfo{self}); err != nil {
		return fmt.Errorf("moving the ledger to %s: %w", address, err)
	}
	info := fmt.Appendf(nil, "Address: '%s'\nID: %d\nRole: 0\n", address, id)
	for name, text := range map[string][]byte{infoFile: info, membersFile: membersText([]client.NodeInfo{self})} {
		if err := renameio.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return os.Remove(path)
}
