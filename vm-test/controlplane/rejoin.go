package controlplane

// Rejoin starts a member at the address of one that was wiped and removed, under
// another name, as a reinstalled node does. It returns when the new one votes.
func (p *Plane) Rejoin(i int) {
	p.t.Helper()
	p.Wipe(i)
	m := p.newMember(i)
	m.args = append(m.args, "--join", p.living(), "--promote")
	m.run = p.start(m.Name, "etcd", m.args...)
	p.members[i] = m
	p.awaitMember(m)
}
