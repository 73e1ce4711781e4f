// Package pxebench measures pxed's DHCP, TFTP and HTTP beside the servers that
// people use otherwise: dnsmasq, Kea, tftpd-hpa, nginx, and the TFTP library of Go.
// Each of them is a program of its own with a host of its own (a network name
// space), pxed as it is shipped, with its ledger and its log; all hosts and the
// client's are plugged into one bridge. All run all the time, and are asked in
// turns.
//
// Without -bench-run only a short run is made, to show that the measurement works,
// beside those programs that are installed; its numbers mean nothing. With it the
// tables are printed, written as JSON into -bench-out, and an aim that is missed is
// a failure.
package pxebench
