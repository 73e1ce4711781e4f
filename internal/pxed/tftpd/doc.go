// Package tftpd serves the boot loaders by TFTP, read-only: RFC 1350 with the
// options blksize (RFC 2348), timeout and tsize (RFC 2349) and windowsize (RFC 7440).
//
// It speaks the protocol itself. The TFTP library that was tried first knows neither
// windowsize nor timeout on the server's side, answers every failure with the same
// error code, and keeps reading after a client has said that it is content.
//
// Files are small (iPXE is under a megabyte), so they are held in memory by who
// hands them over: the sender cuts packets out of them and reads nothing.
package tftpd
