package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// LabKey is the public half of vm-test/testdata/lab_ed25519, whose private half
// is published with the source.
const LabKey = "AAAAC3NzaC1lZDI1NTE5AAAAINXJ6qihKWyirusEsvJI0z7l01boftJK2lgdomTqwJyY"

// users finds accounts that are given twice.
func users(c *cluster.Cluster, report Report) {
	names := seen[string]{}
	for i, u := range c.Access.Users {
		path := fmt.Sprintf("access.users[%d]", i)
		if first, again := names.again(u.Name, path); again && u.Name != "" {
			report(path+".name", fmt.Sprintf("the user %s is given twice", u.Name), "the first is "+first+"; a user may have several keys")
		}
	}
}

// systemNames are the accounts and groups of Debian's base-passwd and of the
// packages of a node. cloud-init makes a group of each user's name, which fails
// for groups, too.
func systemNames() []string {
	return strings.Fields(`daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc nobody
		adm tty disk kmem dialout fax voice cdrom floppy tape sudo audio dip operator src shadow utmp video sasl
		plugdev staff users nogroup input sgx kvm render crontab netdev ssh sshd messagebus polkitd tss
		statd _rpc _apt _chrony _ssh dnsmasq lxd docker ceph`)
}

func userNames(c *cluster.Cluster, report Report) {
	for i, u := range c.Access.Users {
		path := fmt.Sprintf("access.users[%d].name", i)
		switch {
		case u.Name == "root":
			report(path, "root does not log in", "name a person's account and give it sudo: true")
		case slices.Contains(systemNames(), u.Name), strings.HasPrefix(u.Name, "systemd-"):
			report(path, u.Name+" is an account or group of the system itself", "choose another name")
		}
	}
}

// someoneIsRoot makes sure that bootstrap can do its work on the nodes.
func someoneIsRoot(c *cluster.Cluster, report Report) {
	if len(c.Access.Users) > 0 && !slices.ContainsFunc(c.Access.Users, func(u cluster.User) bool { return u.Sudo }) {
		report("access.users", "no user has sudo: true", "bootstrap and repairs need root; give it to one of them")
	}
}

// labKey keeps the published key off real machines, whatever its comment says.
func labKey(c *cluster.Cluster, report Report) {
	if c.Substrate != cluster.SubstrateMetal {
		return
	}
	for i, u := range c.Access.Users {
		for j, key := range u.Keys {
			if fields := strings.Fields(key); len(fields) > 1 && fields[1] == LabKey {
				report(fmt.Sprintf("access.users[%d].keys[%d]", i, j), "the lab's key on metal: its private half is published with the source of Slipway", "make your own: ssh-keygen -t ed25519")
			}
		}
	}
}
