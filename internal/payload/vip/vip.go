// Package vip decides how the virtual address of the Kubernetes API moves between the
// servers: keepalived's configuration of one node and the script that tells whether
// the node's own API server is ready. Nothing in front of the API runs in a container.
//
// The rules, with their sources in keepalived.conf(5): all start as backup and none
// takes the address back (nopreempt), so that a server that comes and goes moves
// nothing; the holder gives it up when its API server fails twice in a row (a script
// without weight), and says so at once; when it dies silently the others wait for
// three advertisements (RFC 5798, section 6.1). Both take less than five seconds. An
// API server that accepts a connection and says nothing has two seconds each time: a
// busy one must not lose the address. Nor must a busy node: keepalived asks for a
// real-time priority when it is not run in time (max_auto_priority).
package vip

import (
	"fmt"
	"path"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/payload/k3sconf"
)

// Names of the two files in Place.Dir.
const (
	ConfigName = "keepalived.conf"
	CheckName  = "check-api"
)

// Unit runs keepalived on a node that has a configuration.
const Unit = "keepalived.service"

// InterfacePath is written by the unit each time it starts: it defines $LAN, the
// interface that has the node's address now. Names of interfaces change.
const InterfacePath = "/run/slipway/keepalived-lan.conf"

// Place is where the files lie and what they speak to.
type Place struct {
	Dir string // directory of the files
	LAN string // interface; "" reads InterfacePath
	URL string // of the node's own API server
	TLS string // directory with server-ca.crt, client-admin.crt and client-admin.key
}

// OnNode is the place on a node.
func OnNode() Place {
	return Place{Dir: "/etc/slipway", URL: fmt.Sprintf("https://127.0.0.1:%d", k3sconf.APIPort), TLS: k3sconf.DataDir + "/server/tls"}
}

// Wanted reports whether a node takes part: a server of a cluster with an address.
func Wanted(c cluster.Cluster, n cluster.Node) bool {
	return c.Network.APIVIP.IsValid() && n.Role == cluster.RoleServer
}

// Files are what bootstrap writes to a node; none when it takes no part. Every
// server needs an address, see k3sconf.Addressed.
func Files(c cluster.Cluster, n cluster.Node) (fstree.Tree, error) {
	if !Wanted(c, n) {
		return fstree.New()
	}
	p := OnNode()
	config, err := Config(c, n, p)
	if err != nil {
		return fstree.Tree{}, err
	}
	return fstree.New(
		fstree.File(path.Join(p.Dir, ConfigName)[1:], 0o644, config),
		fstree.File(path.Join(p.Dir, CheckName)[1:], 0o755, Check(p)),
	)
}

// Config is keepalived's configuration of a node.
func Config(c cluster.Cluster, n cluster.Node, p Place) ([]byte, error) {
	var peers strings.Builder
	priority := 0
	for i, s := range c.Servers() {
		if !s.Address().IsValid() {
			return nil, fmt.Errorf("virtual address on node %s: node %s has no address", n.Name, s.Name)
		}
		if s.Name == n.Name {
			priority = first - step*i
			continue
		}
		fmt.Fprintf(&peers, "        %s\n", s.Address())
	}
	lan, include := p.LAN, ""
	if lan == "" {
		lan, include = "$LAN", "include "+InterfacePath+"\n"
	}
	vip := c.Network.APIVIP
	return fmt.Appendf(nil, config, n.Name, include, n.Name, path.Join(p.Dir, CheckName), lan, router(c), priority, source(n, peers.String()), vip, lan), nil
}

// source is the address that advertisements come from, and the servers that they go
// to: some switches lose multicast. A single server has nobody to write to.
func source(n cluster.Node, peers string) string {
	if peers == "" {
		return fmt.Sprintf("    mcast_src_ip %s\n", n.Address())
	}
	return fmt.Sprintf("    unicast_src_ip %s\n    unicast_peer {\n%s    }\n", n.Address(), peers)
}

// Priorities only order an election: a later server in the profile has a lower one.
const (
	first = 200
	step  = 10
)

// router is the virtual router's number, 1 to 255. It follows from the address, so
// that two clusters in one LAN do not share it by accident.
func router(c cluster.Cluster) int {
	b := c.Network.APIVIP.As4()
	return int(b[3])%255 + 1
}

const config = `# Written by Slipway for node %s: the virtual address of the Kubernetes API.
%s
global_defs {
    router_id %s
    vrrp_version 3
    script_user root
    enable_script_security
    vrrp_garp_master_refresh 30
    max_auto_priority 50
}

vrrp_script api {
    script "%s"
    interval 1
    timeout 3
    fall 2
    rise 2
    init_fail
}

vrrp_instance api {
    state BACKUP
    nopreempt
    interface %s
    virtual_router_id %d
    priority %d
    advert_int 1
%s    virtual_ipaddress {
        %s/32 dev %s
    }
    track_script {
        api
    }
}
`

// Check is the script that succeeds when the node's own API server is ready. The
// certificates are k3s's: it answers nothing without one.
func Check(p Place) []byte {
	return fmt.Appendf(nil, check, p.TLS, p.URL)
}

const check = `#!/bin/sh
# Written by Slipway: is the API server of this node ready?
tls=%s
exec curl --silent --fail --max-time 2 --noproxy '*' --output /dev/null \
	--cacert "$tls/server-ca.crt" --cert "$tls/client-admin.crt" --key "$tls/client-admin.key" \
	%s/readyz
`
