// Package bench measures the product beside what a Debian user would do without
// it, on the same machine, in the same run, with the same packages and the same
// seed:
//
//   - the build beside mkosi, the image builder of the systemd project, as Debian
//     ships it: both have all packages at hand and nothing built;
//   - power-on to "cloud-init finished" beside a plain Debian image: ext4,
//     initramfs-tools, systemd-boot; alternately, several times.
//
// mkosi's own image is not the one that is booted: its initrd is built from
// systemd and five times as large, which would flatter us.
//
// It needs root, because mkosi runs in a Debian release of its own. Run it with
// make bench; without the flag -bench-run only the arithmetic is tested.
package bench
