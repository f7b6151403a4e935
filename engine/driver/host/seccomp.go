//go:build linux

package host

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// socketFilter is a seccomp program that refuses to make sockets: all of them,
// or unix ones, which Landlock doesn't tell apart by path before ABI 9, the
// engine's own among them. A pair of connected sockets is harmless and stays.
// io_uring makes sockets without the system call, so it is refused with them.
func socketFilter(all bool) []unix.SockFilter {
	const (
		load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		result  = unix.BPF_RET | unix.BPF_K

		offsetNr, offsetArch, offsetArg0 = 0, 4, 16
		x32                              = 0x40000000
	)
	deny := unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
	refused := unix.SockFilter{Code: equal, K: unix.AF_UNIX, Jf: 1}
	if all {
		refused = unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA}
	}
	return []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: auditArch(), Jt: 1},
		{Code: result, K: deny}, // another calling convention: its numbers mean other calls
		{Code: load, K: offsetNr},
		{Code: atLeast, K: x32, Jt: 4},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 3},
		{Code: equal, K: unix.SYS_SOCKET, Jf: 3},
		{Code: load, K: offsetArg0},
		refused,
		{Code: result, K: deny},
		{Code: result, K: unix.SECCOMP_RET_ALLOW},
	}
}

// auditArch is how seccomp names this machine's system calls.
func auditArch() uint32 {
	switch runtime.GOARCH {
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	case "riscv64":
		return unix.AUDIT_ARCH_RISCV64
	}
	return unix.AUDIT_ARCH_X86_64
}
