// Package boot holds the test that boots the lab image in a virtual machine:
// with a real UEFI firmware and empty NVRAM, on a disk that is larger than the
// image, with 1 GiB of memory. It looks at the node as its operator would, over
// SSH with the key from the profile, and at the disk with foreign readers.
//
// The image must have been built with the seed of node n1. SLIPWAY_IMAGE_DIR
// names the directory, default ../../out/lab.
package boot
