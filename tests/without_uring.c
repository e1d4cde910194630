/* SPDX-License-Identifier: MIT
 * Runs a program where io_uring is forbidden, as Docker does by default.
 *
 *	without_uring PROGRAM [ARGUMENT...] */
#include "tests/forbid.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: without_uring PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	if (forbid(SYS_io_uring_setup)) {
		perror("without_uring: seccomp");
		return 77; /* for Meson: skipped */
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
