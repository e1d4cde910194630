/* SPDX-License-Identifier: MIT
 * Preloaded into linux.uml on hosts with more processor state than it knows.
 *
 * User-mode Linux up to 6.12 keeps 2696 bytes of a process's extended state (up to AVX-512). The
 * host's kernel takes back a whole area only, which is larger where the processor has AMX: then
 * PTRACE_SETREGSET fails and the guest's first process dies ("ptrace set fp regs failed"). Here
 * such a part is completed to a whole: what is missing is in its initial state, which is right,
 * since a guest's process cannot ask for AMX. */
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define XSTATE_BV 512    /* where the area tells which components it has */
#define KNOWN     0x2ffu /* x87 ... AVX-512, PKRU: all within 2696 bytes */

/* Not on the stack: linux.uml calls from small ones. It has a single thread. */
static uint8_t area[1 << 16] __attribute__((aligned(64)));
static size_t whole;

static long get_xstate(long pid, struct iovec *part)
{
	struct iovec all = {area, sizeof(area)};
	long rc = syscall(SYS_ptrace, PTRACE_GETREGSET, pid, (long)NT_X86_XSTATE, &all);

	if (rc < 0)
		return rc;
	whole = all.iov_len;
	if (part->iov_len > whole)
		part->iov_len = whole;
	memcpy(part->iov_base, area, part->iov_len);
	return rc;
}

static long set_xstate(long pid, struct iovec *part)
{
	struct iovec all = {area, whole};
	uint64_t components;

	if (part->iov_len >= whole || part->iov_len < XSTATE_BV + 64)
		return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, (long)NT_X86_XSTATE, part);
	memcpy(area, part->iov_base, part->iov_len);
	memset(area + part->iov_len, 0, whole - part->iov_len);
	memcpy(&components, area + XSTATE_BV, sizeof(components));
	components &= KNOWN;
	memcpy(area + XSTATE_BV, &components, sizeof(components));
	return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, (long)NT_X86_XSTATE, &all);
}

/* By a name of its own, since C libraries do not agree on the type of `request`. */
long in_its_place(int request, ...) __asm__("ptrace") __attribute__((visibility("default")));

long in_its_place(int request, ...)
{
	long pid, addr, data, word, rc;
	va_list ap;

	va_start(ap, request);
	pid = va_arg(ap, long);
	addr = va_arg(ap, long);
	data = va_arg(ap, long);
	va_end(ap);
	if (request == PTRACE_GETREGSET && addr == NT_X86_XSTATE)
		return get_xstate(pid, (struct iovec *)data);
	if (request == PTRACE_SETREGSET && addr == NT_X86_XSTATE)
		return set_xstate(pid, (struct iovec *)data);
	if (request != PTRACE_PEEKTEXT && request != PTRACE_PEEKDATA && request != PTRACE_PEEKUSER)
		return syscall(SYS_ptrace, request, pid, addr, data);
	/* The library's function returns the word, the system call stores it. */
	rc = syscall(SYS_ptrace, request, pid, addr, &word);
	if (rc < 0)
		return rc;
	errno = 0;
	return word;
}
