// Package installbench measures an install beside what people do without an
// installer: curl | zstd -d | dd. Both read the same image from the same pxed, over
// the same link, and write it to the same kind of disk: a loop device in memory, so
// that no disk is waited for and everything that an install does beyond the pipe
// counts in full: checking each chunk before and after it is unpacked, seed and
// partition table, reading everything back, ticket, progress and receipt.
//
// It also measures eight machines at once beside one. What bounds them is a link,
// and there are two that it can be:
//
//   - each machine's own: all hang on ports of 50 Mbit/s, the server on one that
//     carries all of them. Then eight must not take much longer than one.
//   - the server's: all share one port of 400 Mbit/s. Eight then take eight times
//     as long for eight times the bytes, and what must not suffer is the bytes a
//     second that go over that link.
//
// Machines are name spaces with a process that runs the code of nodeinit's installer
// behind the kernel's start: boot script, report, ticket, internal/node/install.
//
// It needs root (loop devices), bin/ and out/lab. Without -bench-run one install and
// one pipe show that the measurement works; their numbers mean nothing.
package installbench
