package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/progress"
	"github.com/slipway/slipway/internal/pxed"
	"github.com/slipway/slipway/internal/pxed/httpd"
	"github.com/slipway/slipway/internal/pxed/keep"
	"github.com/slipway/slipway/internal/pxed/lines"
	"github.com/slipway/slipway/internal/pxed/pxe"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	profile, image, key    string
	interfaces, also       []string
	mode, pool, http, bios string
	socket, state          string
	ledger                 ledger.Options
	discover, verbose      bool
	force                  bool
	logFormat              string
}

func newServeCmd() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "serve an image to the machines of a profile",
		Long: `serve verifies a build and serves it to the machines behind the named interfaces:
DHCP (by default beside the network's own DHCP server, as a proxy), TFTP and HTTP.
It binds to these interfaces only. As the only DHCP server it first looks for five
seconds whether there is another one, and refuses to start when there is. Without -i it serves HTTP alone, for a DHCP
server that sends machines here.

Every machine that network-boots is sent to its own disk, but for one that was
armed (pxed arm NODE). With --discover, a machine that belongs to no node is
started once to report what it consists of; nothing is written on it.

It needs root, or CAP_NET_BIND_SERVICE and CAP_NET_RAW.`,
		Example: `  pxed serve -p profiles/lab.yaml --image out/lab -i eth1
  pxed serve -p profiles/lab.yaml --image out/lab -i eth1 --mode dhcp --pool 10.0.2.100-10.0.2.199
  pxed serve -p profiles/prod.yaml --image out/prod -i eth0 --ledger-address 192.168.20.5:9000 --join 192.168.20.6:9000`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd, f) },
	}
	f.add(cmd)
	return cmd
}

func (f *serveFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&f.profile, "profile", "p", "profiles/lab.yaml", "profile of the environment")
	fl.StringVar(&f.image, "image", "", "directory of the build (default: out/<environment>)")
	fl.StringVar(&f.key, "key", "", "public key that must have signed the build (default: ~/.config/slipway/sign_ed25519.pub)")
	fl.StringSliceVarP(&f.interfaces, "interface", "i", nil, "network interface to serve; may be repeated")
	fl.StringVar(&f.mode, "mode", string(pxe.ModeProxy), "proxy: beside the network's DHCP server; dhcp: the only DHCP server of an isolated network")
	fl.StringVar(&f.pool, "pool", "", "mode dhcp: addresses to give, FIRST-LAST (default: the upper half of the network)")
	fl.BoolVar(&f.force, "force", false, "mode dhcp: give addresses although another DHCP server answers on the network")
	fl.StringVar(&f.http, "http", ":8080", "where HTTP listens, [ADDRESS]:PORT; without an address on those of the interfaces")
	fl.StringVar(&f.bios, "bios-boot", string(httpd.LocalExit), "how BIOS machines go to their disk: exit (in the firmware's order) or sanboot (the first disk)")
	fl.BoolVar(&f.discover, "discover", false, "start machines that belong to no node to report what they are")
	fl.StringVar(&f.socket, "socket", defaultSocket(), "unix socket for the other commands")
	fl.StringVar(&f.state, "state", defaultState, "directory for the token, the leases and the ledger")
	fl.StringVar(&f.ledger.Dir, "ledger", "", "directory of the ledger (default: ledger in the state directory)")
	fl.StringVar(&f.ledger.Address, "ledger-address", "", "HOST:PORT at which other pxed reach this one's ledger")
	fl.StringSliceVar(&f.ledger.Join, "join", nil, "HOST:PORT of a pxed whose ledger is joined; may be repeated")
	fl.StringSliceVar(&f.also, "also", nil, "URL of another pxed with the same ledger, where installers go on when this one is away; may be repeated")
	fl.StringVar(&f.ledger.Key, "ledger-key", "", "key that all members of the ledger share (default: in the ledger's directory)")
	fl.StringVar(&f.logFormat, "log", "text", "form of the log on stderr: text or json")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log every request")
}

func runServe(cmd *cobra.Command, f serveFlags) error {
	log := lines.New(cmd.ErrOrStderr())
	defer log.Close()
	o, err := f.options(log)
	if err != nil {
		return err
	}
	spareCollector()
	if len(o.Interfaces) > 0 {
		if err := pxed.CheckPrivileges(program()); err != nil {
			return err
		}
	}
	if o.Token, err = pxed.EnsureToken(filepath.Join(f.state, tokenName)); err != nil {
		return err
	}
	o.Leases = &pxed.LeaseFile{Path: filepath.Join(f.state, "leases.json"), Now: time.Now}
	if f.ledger.Dir == "" {
		f.ledger.Dir = filepath.Join(f.state, "ledger")
	}
	if f.verbose { // what Raft says while a member is away fills pages
		f.ledger.Log = o.Log
	}
	l, err := ledger.Open(cmd.Context(), f.ledger)
	if err != nil {
		return err
	}
	kept := keep.Ledger{Ledger: l}
	o.Ledger, o.Members, o.Book = kept, kept, keep.Book{Ledger: l}
	o.Started = func(addresses []netip.AddrPort) { greet(cmd.OutOrStdout(), o, addresses) }
	return errors.Join(pxed.Serve(cmd.Context(), o), l.Close())
}

// spareCollector lets the garbage collector run when the heap has grown to five
// times of what is in use, not twice: that is little in a server of some megabytes,
// and collecting would cost a tenth of each answer. $GOGC overrides it.
func spareCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// options checks the flags, before anything is opened.
func (f *serveFlags) options(log io.Writer) (pxed.Options, error) {
	p, err := profilefile.Load(f.profile)
	if err != nil {
		return pxed.Options{}, err
	}
	o := pxed.Options{
		Cluster: p.Cluster, Image: f.image, Interfaces: f.interfaces, HTTP: f.http, Socket: f.socket,
		Mode: pxe.Mode(f.mode), Force: f.force, Local: httpd.LocalBoot(f.bios), Discover: f.discover, Progress: progress.Nop{},
	}
	if o.Image == "" {
		o.Image = filepath.Join("out", p.Cluster.Environment)
	}
	if o.Mode != pxe.ModeProxy && o.Mode != pxe.ModeDHCP {
		return o, usage(fmt.Errorf("unknown mode %q (proxy or dhcp)", f.mode))
	}
	if o.Local != httpd.LocalExit && o.Local != httpd.LocalSanboot {
		return o, usage(fmt.Errorf("unknown way to boot a disk %q (exit or sanboot)", f.bios))
	}
	if o.Also, err = baseURLs(f.also); err != nil {
		return o, err
	}
	if f.force && o.Mode != pxe.ModeDHCP {
		return o, usage(errors.New("--force has a meaning only with --mode dhcp"))
	}
	if f.pool != "" && o.Mode != pxe.ModeDHCP {
		return o, usage(errors.New("--pool has a meaning only with --mode dhcp: a proxy gives no addresses"))
	}
	if f.pool != "" {
		if o.Pool, err = pxed.ParsePool(f.pool); err != nil {
			return o, err
		}
	}
	if o.Log, err = newLog(log, f.logFormat, f.verbose); err != nil {
		return o, err
	}
	o.Key, err = readKey(f.key)
	return o, err
}

// baseURLs are http://HOST:PORT, as kernel arguments take them.
func baseURLs(texts []string) ([]string, error) {
	var out []string
	for _, text := range texts {
		u, err := url.Parse(strings.TrimSuffix(text, "/"))
		if err != nil || u.Scheme != "http" || u.Host == "" || u.String() != "http://"+u.Host || strings.ContainsAny(u.Host, ", ") {
			return nil, usage(fmt.Errorf("--also %s: want http://ADDRESS:PORT", text))
		}
		out = append(out, u.String())
	}
	return out, nil
}

func usage(err error) error {
	return exit.With(exit.Usage, diag.WithHint(err, "see pxed serve --help"))
}

func newLog(w io.Writer, format string, verbose bool) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if verbose {
		o.Level = slog.LevelDebug
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	default:
		return nil, usage(fmt.Errorf("unknown form of the log %q (text or json)", format))
	}
}

// readKey reads the public key that is trusted; by default the one that
// imagebuild makes on first use.
func readKey(path string) (ed25519.PublicKey, error) {
	if path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, usage(fmt.Errorf("looking for the public key: %w", err))
		}
		path = filepath.Join(dir, "slipway", "sign_ed25519.pub")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("public key: %w", err), "name with --key the public key of who built the image; imagebuild build prints where it is"))
	}
	key, err := artifact.ParseKey(text)
	if err != nil {
		return nil, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("public key %s: %w", path, err), "the public half is one line, in a file that ends in .pub"))
	}
	return key, nil
}

func program() string {
	p, err := os.Executable()
	if err != nil {
		return "PATH"
	}
	return p
}

func greet(w io.Writer, o pxed.Options, addresses []netip.AddrPort) {
	for _, a := range addresses {
		fmt.Fprintf(w, "pxed serves %s at http://%s\n", o.Cluster.Environment, a)
	}
	if o.Cluster.Status == "active" {
		fmt.Fprintln(w, "to image a node: pxed arm NODE")
		return
	}
	fmt.Fprintf(w, "the profile is %s: nothing is armed\n", o.Cluster.Status)
}
