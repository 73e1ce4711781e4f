// Package persist decides what of a node outlives a restart and what is made anew,
// and builds the root file system accordingly. The root is the read-only slot; one
// table says what is laid over it.
package persist

// Kind says where a path's content comes from.
type Kind string

// The kinds.
const (
	Anew  Kind = "anew"  // an overlay over the slot's directory, empty at every boot
	State Kind = "state" // a directory on the state file system
	Slot  Kind = "slot"  // the slot's own directory, showing through a directory on state
	Tmpfs Kind = "tmpfs" // empty at every boot
	File  Kind = "file"  // a file kept on state, copied to its place at every boot
)

// Entry is one line of the table.
type Entry struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	Mode uint32 `json:"mode"` // of the directory or file when it is made here, as in chmod
	Why  string `json:"why"`
	// Options are mount options (for tmpfs) besides those that every mount gets.
	Options string `json:"options,omitempty"`
	// NoSuid forbids set-user-ID programs and device nodes.
	NoSuid bool `json:"noSuid,omitempty"`
}

// Table lists everything that is laid over the slot, in the order in which it is
// set up: what lies inside something else comes after it.
func Table() []Entry {
	return []Entry{
		{Path: "/etc", Kind: Anew, Mode: 0o755,
			Why: "cloud-init writes it from the seed at every boot, so a node cannot drift and a new slot meets no stale file"},
		{Path: "/var", Kind: State, Mode: 0o755,
			Why: "k3s, containers, logs and images; a real ext4, so that container overlays are not nested"},
		{Path: "/var/lib/dpkg", Kind: Slot, Mode: 0o755,
			Why: "the list of packages belongs to the slot that holds them"},
		{Path: "/var/lib/cloud", Kind: Tmpfs, Mode: 0o755, Options: "size=64m", NoSuid: true,
			Why: "without a memory, cloud-init applies the whole seed at every boot; what the seed says stays off the disk"},
		{Path: "/home", Kind: State, Mode: 0o755, NoSuid: true, Why: "the users' files"},
		{Path: "/root", Kind: State, Mode: 0o700, Why: "root's files"},
		{Path: "/opt", Kind: State, Mode: 0o755, Why: "programs that the cluster brings along, such as CNI plugins"},
		{Path: "/tmp", Kind: Tmpfs, Mode: 0o1777, Options: "size=50%,nr_inodes=1m", NoSuid: true,
			Why: "temporary files"},
		{Path: "/etc/rancher", Kind: State, Mode: 0o755, Why: "k3s configuration and the node's password, written by bootstrap and k3s"},
		{Path: "/etc/slipway", Kind: State, Mode: 0o755, Why: "what bootstrap records for this node, such as data mounts"},
		{Path: "/etc/machine-id", Kind: File, Mode: 0o444, Why: "the node's identity, random, made on first boot"},
		{Path: "/etc/ssh/ssh_host_ed25519_key", Kind: File, Mode: 0o600, Why: "host key, made on first boot"},
		{Path: "/etc/ssh/ssh_host_ed25519_key.pub", Kind: File, Mode: 0o644, Why: "its public half"},
		{Path: "/etc/ssh/ssh_host_ecdsa_key", Kind: File, Mode: 0o600, Why: "host key for clients without ed25519, made on first boot"},
		{Path: "/etc/ssh/ssh_host_ecdsa_key.pub", Kind: File, Mode: 0o644, Why: "its public half"},
		{Path: "/etc/iscsi/initiatorname.iscsi", Kind: File, Mode: 0o600,
			Why: "the iSCSI initiator's name, random, made on first boot; two equal ones corrupt volumes"},
	}
}

// Directories on the state file system. Everything lies in a directory of its
// own, so that the file system's root stays ours.
const (
	metaDir = ".slipway"      // what nodeinit notes down
	slotRef = ".slipway/slot" // root hash of the slot whose directories were copied last
)
