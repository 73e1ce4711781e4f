package k3s

import "strings"

// cause is what a line of k3s's journal means.
type cause struct {
	mark  string // what the line contains
	what  string // one sentence; %NODE% is the node
	hint  string
	final bool // waiting does not mend it
	line  string
}

// causes are what keeps a server from coming into a cluster, as k3s and etcd word it,
// the surest first. k3s tries again for ever with most of them, and its unit is
// "activating" all the while.
var causes = []cause{
	{mark: "Node password rejected", final: true,
		what: "the cluster rejects the node password of %NODE%: it remembers another machine of that name",
		hint: "bootstrap rebuild %NODE% removes what it remembers (the Secret %NODE%.node-password.k3s in kube-system) and brings the node back"},
	{mark: "token CA hash does not match", final: true,
		what: "the server that %NODE% would join is of another cluster than the token",
		hint: "look at the address that it joins: server in /etc/rancher/k3s/config.yaml"},
	{mark: "bootstrap data already found and encrypted with different token", final: true,
		what: "the token of %NODE% is not the one of its cluster",
		hint: "put the token of this cluster into the secrets, then run this again"},
	{mark: "/server-bootstrap: 401", final: true,
		what: "the cluster does not know the token of %NODE%",
		hint: "put the token of this cluster into the secrets, then run this again"},
	{mark: "failed to validate token", final: true,
		what: "the cluster does not accept the token of %NODE%",
		hint: "put the token of this cluster into the secrets, then run this again"},
	{mark: "critical configuration value mismatch", final: true,
		what: "k3s on %NODE% has other cluster-wide flags than the cluster",
		hint: "compare /etc/rancher/k3s/config.yaml and config.yaml.d on the servers"},
	{mark: "duplicate node name found", final: true,
		what: "etcd has a member of the name of %NODE% already",
		hint: "bootstrap rebuild %NODE% removes the old one first"},
	{mark: "has already been bootstrapped", final: true,
		what: "etcd has a member at the address of %NODE% already, and the node holds no data",
		hint: "bootstrap rebuild %NODE% removes the old one first"},
	{mark: "the member has been permanently removed from the cluster", final: true,
		what: "etcd has removed the member of %NODE%, and the node still holds its data",
		hint: "bootstrap rebuild %NODE% installs it anew"},
	{mark: "certificate has expired or is not yet valid", final: true,
		what: "a certificate is not valid at the time that the clock of %NODE% shows",
		hint: "compare the clocks of the servers: timedatectl; the first one made certificates in a future that has not come yet"},
	{mark: "no space left on device", final: true,
		what: "the state disk of %NODE% is full",
		hint: "see what fills it: du -x /var | sort -n | tail"},
	{mark: "bind: address already in use", final: true,
		what: "another program on %NODE% has a port that k3s needs",
		hint: "see which: ss -ltnp"},
	{mark: "too many learner members in cluster", what: "etcd lets one new member in at a time, and another one is learning"},
	{mark: "etcdserver: unhealthy cluster", what: "etcd waits until its members are healthy before it lets another in"},
}

// manyRestarts is from how many restarts on k3s counts as one that ends by itself.
const manyRestarts = 3

// find returns what the journal says about why k3s is not there yet. The last line
// that says anything counts among those of equal weight.
func find(u unit, node string) (cause, bool) {
	for _, c := range causes {
		for i := len(u.lines) - 1; i >= 0; i-- {
			if strings.Contains(u.lines[i], c.mark) {
				return c.of(node, u.lines[i]), true
			}
		}
	}
	fatal := lastFatal(u.lines)
	switch {
	case fatal == "":
		return cause{}, false
	case u.active == "failed":
		return cause{what: "k3s has failed on %NODE%", hint: "see journalctl -u k3s there", final: true}.of(node, fatal), true
	case u.restarts >= manyRestarts:
		return cause{what: "k3s ends again and again on %NODE%", hint: "see journalctl -u k3s there", final: true}.of(node, fatal), true
	}
	return cause{what: "k3s has ended and starts again: " + brief(fatal)}, true
}

func (c cause) of(node, line string) cause {
	c.what, c.hint = strings.ReplaceAll(c.what, "%NODE%", node), strings.ReplaceAll(c.hint, "%NODE%", node)
	c.line = brief(line)
	return c
}

// lastFatal is the last line with which k3s ended by itself.
func lastFatal(journal []string) string {
	for i := len(journal) - 1; i >= 0; i-- {
		if strings.Contains(journal[i], "level=fatal") {
			return journal[i]
		}
	}
	return ""
}

// brief is the message of a line of logrus, or the line itself.
func brief(line string) string {
	if _, message, ok := strings.Cut(line, `msg="`); ok {
		line = strings.TrimSuffix(message, `"`)
	}
	if len(line) > 300 {
		line = line[:300] + "…"
	}
	return line
}
