package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipway/slipway/vm-test/labk3s/internal/configfile"
	"github.com/slipway/slipway/vm-test/labk3s/internal/datastore"
	"github.com/slipway/slipway/vm-test/labk3s/internal/member"
	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
	"github.com/slipway/slipway/vm-test/labk3s/internal/snapshot"
)

// saveTime bounds a snapshot.
const saveTime = 5 * time.Minute

// snapshotCommand is `k3s etcd-snapshot`, with the server's own configuration.
type snapshotCommand struct {
	settings settings.Settings
	name     string
	format   string
	keep     int
	dir      snapshot.Dir
}

func etcdSnapshot(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: k3s etcd-snapshot save|ls|delete|prune")
	}
	var c snapshotCommand
	names, err := c.parse(args[1:])
	if err != nil {
		return err
	}
	switch args[0] {
	case "save":
		return c.save()
	case "ls", "list", "l":
		return c.list()
	case "delete":
		return c.remove(names)
	case "prune":
		return c.prune()
	default:
		return fmt.Errorf("k3s etcd-snapshot has no command %q", args[0])
	}
}

// parse reads the flags of the command, and the configuration of the server for what
// they do not say.
func (c *snapshotCommand) parse(args []string) (names []string, err error) {
	fs := pflag.NewFlagSet("k3s etcd-snapshot", pflag.ContinueOnError)
	config := fs.StringP("config", "c", configfile.Default, "configuration file of the server")
	data := fs.StringP("data-dir", "d", "", "directory of all state")
	node := fs.String("node-name", "", "name of the node")
	dir := fs.String("dir", "", "directory of snapshots")
	fs.StringVar(dir, "etcd-snapshot-dir", "", "the same")
	compress := fs.Bool("snapshot-compress", false, "compress the snapshot")
	fs.BoolVar(compress, "etcd-snapshot-compress", false, "the same")
	fs.StringVar(&c.name, "name", "on-demand", "first part of the snapshot's name")
	fs.StringVarP(&c.format, "output", "o", "", "json for programs")
	fs.IntVar(&c.keep, "snapshot-retention", 0, "how many to keep")
	fs.IntVar(&c.keep, "etcd-snapshot-retention", 0, "the same")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	var server []string
	for flag, value := range map[string]string{"config": *config, "data-dir": *data, "node-name": *node, "etcd-snapshot-dir": *dir} {
		if value != "" {
			server = append(server, "--"+flag+"="+value)
		}
	}
	if c.settings, err = settings.Parse(settings.Snapshot, server); err != nil {
		return nil, err
	}
	if c.keep == 0 {
		c.keep = c.settings.SnapshotRetention
	}
	c.dir = snapshot.Dir{Path: c.settings.SnapshotDir, Node: c.settings.NodeName, Compress: *compress || c.settings.SnapshotCompress}
	return fs.Args(), nil
}

func (c *snapshotCommand) save() error {
	ctx, cancel := context.WithTimeout(context.Background(), saveTime)
	defer cancel()
	f := pki.At(c.settings.ServerDir())
	client, err := member.Connect([]string{datastore.Local}, member.Files{CA: f.EtcdServerCA().Cert, Cert: f.EtcdClient().Cert, Key: f.EtcdClient().Key})
	if err != nil {
		return err
	}
	defer client.Close()
	saved, err := c.dir.Save(ctx, client, c.name, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "Snapshot %s saved.\n", saved.Name)
	return nil
}

func (c *snapshotCommand) list() error {
	files, err := c.dir.List()
	if err != nil {
		return err
	}
	return snapshot.Print(os.Stdout, files, c.format)
}

func (c *snapshotCommand) remove(names []string) error {
	for _, name := range names {
		if err := c.dir.Delete(name); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "Snapshot %s deleted.\n", name)
	}
	return nil
}

func (c *snapshotCommand) prune() error {
	removed, err := c.dir.Prune(c.name, c.keep)
	for _, f := range removed {
		fmt.Fprintf(os.Stderr, "Snapshot %s deleted.\n", f.Name)
	}
	return err
}
