// Package canary plants secrets and looks for them where they must not be: in what
// bootstrap prints, in its state, in its ledger, in a support bundle, in arguments of
// processes. The nodes are a real sshd each; what they say of themselves, and systemd,
// are stand-ins.
package canary
