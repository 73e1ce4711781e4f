// Package canary runs the bootstrap program against nodes that are a real sshd each;
// what they say of themselves, and systemd, are stand-ins.
//
// It plants secrets and looks for them where they must not be: in what is printed, in
// the state, in the ledger, in a support bundle, in arguments of processes. And it
// gives every reason not to begin, and looks whether anything was changed all the same.
package canary
