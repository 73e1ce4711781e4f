package images

// InstallModules returns the names of the kernel modules that the installer's
// initramfs of a substrate has beyond InitrdModules: its network drivers. The
// initramfs that boots a node has none, see docs/BOOT.md.
func InstallModules(substrate string) ([]string, error) {
	return list("initrd/" + substrate + ".install")
}

// Firmware is a directory of firmware files in a Debian package.
type Firmware struct {
	Package string
	Dir     string // in the package and, below it, on the node
}

// InstallFirmware returns the firmware that the installer's initramfs of a
// substrate carries for its network drivers.
func InstallFirmware(substrate string) ([]Firmware, error) {
	words, err := list("initrd/" + substrate + ".firmware")
	if err != nil {
		return nil, err
	}
	var out []Firmware
	for i := 0; i+1 < len(words); i += 2 {
		out = append(out, Firmware{Package: words[i], Dir: words[i+1]})
	}
	return out, nil
}
