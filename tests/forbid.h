/* SPDX-License-Identifier: MIT
 * A process that may not, as by the seccomp filter of a container.
 *
 *	if (forbid(SYS_io_uring_setup))
 *		... errno ...
 *	... io_uring_setup says EPERM, here and in all programs that are run from here ... */
#ifndef GCI_TESTS_FORBID_H
#define GCI_TESTS_FORBID_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

/* From here on this process gets EPERM for the system call. 0, or -1 and errno. */
static inline int forbid(int nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
		       ? -1
		       : 0;
}

#endif
