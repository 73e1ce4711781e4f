package volumetest

// Case is a cluster of the nodes n1, n2 and n3, of which n1 is to be rebuilt.
type Case struct {
	Name    string
	Objects []Object
	Down    string   // a node that is not ready
	Risks   []string // what must be said, one for each volume at risk
}

// Cases are all of them.
func Cases() []Case { return append(safe(), risky()...) }

func safe() []Case {
	three := func(state string, first Object) []Object {
		return []Object{Volume("v", state, 3), Replica("v", "n1", first), Replica("v", "n2", nil), Replica("v", "n3", nil)}
	}
	return []Case{
		{Name: "no volumes"},
		{Name: "three replicas, attached", Objects: append(three("attached", nil), Engine("v", map[string]string{"n1": "RW", "n2": "RW", "n3": "RW"}))},
		{Name: "three replicas, detached", Objects: three("detached", nil)},
		{Name: "its own has failed already", Objects: append(three("attached", Failed()), Engine("v", map[string]string{"n1": "ERR", "n2": "RW", "n3": "RW"}))},
		{Name: "none here", Objects: []Object{Volume("v", "attached", 1), Replica("v", "n2", nil)}},
		{Name: "one good one elsewhere, one failed", Objects: []Object{Volume("v", "attached", 3), Replica("v", "n1", nil), Replica("v", "n2", Failed()), Replica("v", "n3", nil)}},
		{Name: "failed once and whole again", Objects: []Object{Volume("v", "attached", 2), Replica("v", "n1", nil), Replica("v", "n2", Object{"lastFailedAt": Early, "lastHealthyAt": Late})}},
		{Name: "never used", Objects: []Object{
			Volume("v", "detached", 3), Replica("v", "n1", Object{"healthyAt": "", "lastHealthyAt": ""}), Replica("v", "n2", Object{"healthyAt": "", "lastHealthyAt": ""}),
		}},
		{Name: "a path of another node", Objects: []Object{Local("l", "n2")}},
	}
}

func risky() []Case {
	pair := func(state string, other Object) []Object {
		return []Object{Volume("v", state, 2), Replica("v", "n1", nil), Replica("v", "n2", other)}
	}
	last := "v (claim data/v): its last healthy replica is on n1"
	return []Case{
		{Name: "one replica", Objects: []Object{Volume("v", "attached", 1), Replica("v", "n1", nil)}, Risks: []string{"v (claim data/v): it has one replica, on n1"}},
		{Name: "one replica, detached", Objects: []Object{Volume("v", "detached", 1), Replica("v", "n1", nil)}, Risks: []string{"v (claim data/v): it has one replica, on n1"}},
		{Name: "the other has failed", Objects: pair("attached", Failed()), Risks: []string{last + "; the one on n2 has failed"}},
		{Name: "the other has failed, detached", Objects: pair("detached", Failed()), Risks: []string{last + "; the one on n2 has failed"}},
		{Name: "the other is being built", Objects: pair("attached", Building()), Risks: []string{last + "; the one on n2 is being built"}},
		{Name: "the engine knows better", Objects: append(pair("attached", nil), Engine("v", map[string]string{"n1": "RW", "n2": "WO"})), Risks: []string{last + "; the one on n2 is in mode WO"}},
		{Name: "the other is not in use", Objects: pair("attached", Object{"active": false}), Risks: []string{last + "; the one on n2 is not in use"}},
		{Name: "the other is trusted by accident", Objects: pair("attached", Object{"lastFailedAt": Late}), Risks: []string{last + "; the one on n2 has not been whole since it failed"}},
		{Name: "the other's node is down", Objects: pair("detached", nil), Down: "n2", Risks: []string{last + "; n2 is down"}},
		{Name: "the other has no place", Objects: pair("attached", Object{"nodeID": "", "diskID": "", "healthyAt": ""}), Risks: []string{last + "; one has no place yet"}},
		{Name: "all have failed", Objects: []Object{Volume("v", "detached", 2), Replica("v", "n1", Failed()), Replica("v", "n2", Failed())}, Risks: []string{
			"v (claim data/v): it has no healthy replica anywhere, and a damaged one that may be all that is left is on n1; the one on n2 has failed",
		}},
		{Name: "nothing is whole while it is attached first", Objects: []Object{Volume("v", "attaching", 2), Replica("v", "n1", Building()), Replica("v", "n2", Building())}, Risks: []string{
			"v (claim data/v): it has no healthy replica anywhere",
		}},
		{Name: "a path of this node", Objects: []Object{Local("l", "n1")}, Risks: []string{"l (claim data/l): it lies on a disk of n1 itself"}},
		{
			Name: "several",
			Objects: []Object{
				Volume("a", "attached", 1), Replica("a", "n1", nil), Volume("b", "attached", 3), Replica("b", "n1", nil), Replica("b", "n2", nil),
				Volume("c", "detached", 2), Replica("c", "n1", nil), Replica("c", "n3", Failed()), Local("l", "n1"),
			},
			Risks: []string{"a (claim data/a): it has one replica, on n1", "c (claim data/c): its last healthy replica is on n1; the one on n3 has failed", "l (claim data/l): it lies on a disk of n1 itself"},
		},
	}
}
