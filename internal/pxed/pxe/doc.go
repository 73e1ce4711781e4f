// Package pxe decides what a machine that asks for DHCP is told: packet in,
// decision out. It opens no socket and reads no clock, so that every rule here is
// tested with the packets of real firmware (testdata/*.hex).
//
// A machine boots from the network in two stages. Its firmware asks first and is
// given iPXE: by TFTP, or by HTTP when the firmware boots that way. iPXE then asks
// again and is given the address of a script, which pxed's HTTP side writes from
// the machine's state. What to boot is decided there and nowhere else; here it is
// only decided how to get the machine to ask.
//
// Sources: RFC 2131 and 2132 (DHCP), RFC 4578 (options 93, 94, 97), the Preboot
// Execution Environment specification 2.1 (option 43, port 4011, called "PXE 2.1"
// below), UEFI specification 2.10 chapter 24 (HTTP boot), and what OVMF, SeaBIOS
// and iPXE were seen to do.
package pxe
