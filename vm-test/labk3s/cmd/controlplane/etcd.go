package main

import (
	"context"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway/slipway/vm-test/labk3s/internal/member"
)

// etcdFlags are a member's settings, and how it comes into a cluster.
type etcdFlags struct {
	member.Config
	client string
	join   string
	vote   bool
}

func etcdCommand() *cobra.Command {
	var f etcdFlags
	cmd := &cobra.Command{
		Use:          "etcd",
		Short:        "run one member of an etcd cluster",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return f.run(ctx)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *etcdFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.Name, "name", "n1", "name of the member")
	fs.StringVar(&f.Dir, "data-dir", "", "directory of its data")
	fs.StringVar(&f.client, "client-url", "", "where it listens to clients")
	fs.StringVar(&f.Peer, "peer-url", "", "where it listens to the other members")
	fs.StringVar(&f.Initial, "initial-cluster", "", "name=peer-url of all members of a new cluster")
	fs.StringVar(&f.join, "join", "", "client URL of a living member; joins its cluster as a learner")
	fs.BoolVar(&f.vote, "promote", false, "after --join, become a voter")
	fs.StringVar(&f.ClientTLS.CA, "client-ca", "", "CA of the clients")
	fs.StringVar(&f.ClientTLS.Cert, "client-cert", "", "certificate for clients, also shown to a member that is joined")
	fs.StringVar(&f.ClientTLS.Key, "client-key", "", "key of that certificate")
	fs.StringVar(&f.PeerTLS.CA, "peer-ca", "", "CA of the members")
	fs.StringVar(&f.PeerTLS.Cert, "peer-cert", "", "certificate for members")
	fs.StringVar(&f.PeerTLS.Key, "peer-key", "", "key of that certificate")
	fs.DurationVar(&f.Heartbeat, "heartbeat", 0, "time between heartbeats of the leader")
	fs.DurationVar(&f.Election, "election", 0, "time without heartbeats until an election")
	fs.BoolVar(&f.NoFsync, "unsafe-no-fsync", false, "do not wait for the disk")
}

func (f *etcdFlags) run(ctx context.Context) error {
	f.Clients = []string{f.client}
	if f.join != "" {
		if err := f.enter(ctx); err != nil {
			return err
		}
	}
	e, err := member.Start(ctx, f.Config)
	if err != nil {
		return err
	}
	defer e.Close()
	if f.join != "" && f.vote {
		if err := f.promote(ctx); err != nil {
			return err
		}
	}
	return member.Wait(ctx, e)
}

// timeToJoin bounds what a joining member asks of the others.
const timeToJoin = time.Minute

func (f *etcdFlags) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeToJoin)
	defer cancel()
	c, err := member.Connect([]string{f.join}, f.ClientTLS)
	if err != nil {
		return err
	}
	defer c.Close()
	f.Joining = true
	f.Initial, err = member.Join(ctx, c, f.Name, f.Peer)
	return err
}

func (f *etcdFlags) promote(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeToJoin)
	defer cancel()
	c, err := member.Connect([]string{f.join}, f.ClientTLS)
	if err != nil {
		return err
	}
	defer c.Close()
	return member.Promote(ctx, c, f.Peer)
}
