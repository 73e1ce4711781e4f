// Package stick starts machines from an installer stick: OVMF boots it as USB
// storage, nodes are installed from it once, and what must not be written is not.
//
// It needs the image that scripts/metal-image builds, because the kernel of virtual
// machines has no USB drivers, and takes minutes without KVM.
package stick
