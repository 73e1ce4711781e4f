package pxe

// Codes of the options that are read or written here (RFC 2132 unless said).
const (
	optSubnetMask   = 1
	optRouter       = 3
	optDNS          = 6
	optHostName     = 12
	optDomain       = 15
	optBroadcast    = 28
	optNTP          = 42
	optVendor       = 43
	optRequestedIP  = 50
	optLeaseTime    = 51
	optMessageType  = 53
	optServerID     = 54
	optMessage      = 56
	optRenewal      = 58
	optRebinding    = 59
	optVendorClass  = 60
	optClientID     = 61
	optBootFile     = 67
	optUserClass    = 77  // RFC 3004
	optRelay        = 82  // RFC 3046
	optArch         = 93  // RFC 4578
	optUUID         = 97  // RFC 4578
	optIPXE         = 175 // iPXE's own, encapsulated
	optionEnd       = 255
	optionPad       = 0
	ipxeNoProxyDHCP = 176 // in option 175: do not wait for a proxyDHCP server
	ipxeHTTP        = 19  // in option 175: iPXE speaks HTTP
	vendorControl   = 6   // in option 43: PXE_DISCOVERY_CONTROL
	vendorBootItem  = 71  // in option 43: PXE_BOOT_ITEM
	controlBootFile = 8   // of PXE_DISCOVERY_CONTROL: take the boot file of this offer, discover nothing
)

// suboptions reads an option that holds options (PXE 2.1 section 2.2.2). A part
// that is cut off is left out.
func suboptions(b []byte) map[uint8][]byte {
	out := map[uint8][]byte{}
	for len(b) > 0 && b[0] != optionEnd {
		if b[0] == optionPad {
			b = b[1:]
			continue
		}
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			break
		}
		out[b[0]] = b[2 : 2+int(b[1])]
		b = b[2+int(b[1]):]
	}
	return out
}

// takeBootFile is the option 43 of an offer that already names the boot file.
// Without it, firmware goes looking for boot servers and ends in PXE-E16.
func takeBootFile() []byte { return []byte{vendorControl, 1, controlBootFile, optionEnd} }
