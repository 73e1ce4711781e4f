// Package pxebench measures pxed's DHCP and TFTP beside the servers that people
// use otherwise: dnsmasq, Kea and tftpd-hpa, and the TFTP library of Go. All run in
// the same network of name spaces, one after the other, under the same clients.
//
// Without -bench-run only a short run is made, to show that the measurement works;
// its numbers mean nothing. With it the table is printed, and written as JSON to
// -bench-out when given.
package pxebench
