// Package firmware lets real firmware boot from pxed's listeners: OVMF by TFTP and
// by HTTP, SeaBIOS with iPXE's option ROM, as the only DHCP server and as a proxy
// beside dnsmasq. It ends where iPXE's script is asked for, or where the machine's
// own disk starts.
//
// It needs what make image builds, and takes minutes without KVM. The packets in
// internal/pxed/pxe/testdata were captured here, with tcpdump on the bridge.
package firmware
