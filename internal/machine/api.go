package machine

// Paths of the HTTP interface between a machine and pxed. All of them below /v1
// want "Authorization: Bearer <Ticket.ID>", but for the report, which any machine
// may send. Bodies are JSON.
const (
	// PathBoot is asked by iPXE, with ?mac=&serial=&uuid=; the answer is an iPXE script.
	PathBoot = "/boot/ipxe"
	// PathArtifacts serves the files of the build by their names in the index,
	// with HEAD and Range.
	PathArtifacts = "/artifacts/"
	// PathReport takes a Report and answers with a Reply.
	PathReport = "/v1/machine/report"
	// PathTicket answers with the Ticket.
	PathTicket = "/v1/machine/ticket"
	// PathSeed answers with a Seed, once for each start of a machine; then 410. With
	// HeaderStart the start that has it may ask again: an answer can be lost.
	PathSeed = "/v1/machine/seed"
	// PathProgress takes a Progress. 409 means that the ticket is no longer valid: stop.
	PathProgress = "/v1/machine/progress"
	// PathReceipt takes a Receipt and consumes the ticket. Sending the same
	// receipt again is answered as the first time.
	PathReceipt = "/v1/machine/receipt"
	// PathHealth is asked by an installed node when it is ready, with a Ready.
	PathHealth = "/v1/machine/ready"
)

// HeaderStart names the start of the machine that a request belongs to. It is chosen
// anew at each start and never leaves the machine but in this header, so that who has
// only read a ticket somewhere cannot repeat a request of the machine.
const HeaderStart = "Slipway-Start"

// Words of the kernel command line that tell nodeinit what it was started for.
const (
	WordMode   = "slipway.mode"   // ModeInstall or ModeInventory; absent means: boot the slot
	WordServer = "slipway.server" // base URL of pxed; after commas those of others with the same ledger
	WordTicket = "slipway.ticket" // Ticket.ID
	WordMAC    = "slipway.mac"    // of the interface the machine booted from
)

// Values of WordMode.
const (
	ModeInstall   = "install"   // image this machine, ticket in WordTicket or in the bundle on the stick
	ModeInventory = "inventory" // report, write nothing
)

// Action is what a machine is told to do.
type Action string

// The actions.
const (
	ActionBootDisk  Action = "boot-disk" // the default: start what is on the disk
	ActionInstall   Action = "install"   // only for an armed machine
	ActionInventory Action = "inventory" // start the installer to report, and to write nothing
	ActionWait      Action = "wait"      // ask again after Reply.After seconds
	ActionPowerOff  Action = "power-off"
)

// Reply is the answer to a report.
type Reply struct {
	Action  Action `json:"action"`
	Message string `json:"message"`         // for the console: what and why
	After   int    `json:"after,omitempty"` // seconds, for ActionWait
}

// HomeName is the name of a Home on the seed partition, beside the documents of the
// seed but no part of it: cloud-init does not know it.
const HomeName = "slipway-home.json"

// Home tells an installed node whom to tell when it is ready, and by what it is
// recognised: the ticket it was installed with, which is good for nothing else any more.
type Home struct {
	Server string `json:"server"` // as WordServer
	Ticket string `json:"ticket"` // Ticket.ID
}

// Seed is the NoCloud documents of a node by name.
type Seed map[string]string

// Ready is what a node says when it has reached its baseline for the first time
// after an install.
type Ready struct {
	Node      string   `json:"node"`
	MachineID string   `json:"machineId"`
	HostKeys  []string `json:"hostKeys"` // authorized_keys form
	Slot      string   `json:"slot"`
	RootHash  string   `json:"rootHash"`
}
