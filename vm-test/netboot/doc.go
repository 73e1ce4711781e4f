// Package netboot holds the test that installs virtual machines over the network,
// from power-on to a node that reports ready, with the built programs and nothing
// else: bin/pxed serves out/lab on a bridge of a network namespace without a way
// out, and blank machines with real firmware are plugged into it.
//
// SLIPWAY_NETBOOT=short (the default) installs one machine under OVMF by TFTP with
// pxed as the only DHCP server; full goes through all firmwares, proxyDHCP beside
// dnsmasq, a hundred boots after the install, refusals, and losses of power.
// SLIPWAY_IMAGE_DIR names the build, default ../../out/lab, and SLIPWAY_BIN_DIR the
// programs, default ../../bin.
package netboot
