package desk

import "github.com/slipway/slipway/internal/machine"

// CodeNoRecord: the ledger has no such run, or knows no cluster.
const CodeNoRecord machine.Code = "no-such-record"
