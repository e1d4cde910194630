/* SPDX-License-Identifier: MIT */
#include "base/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int gci_terminal_name(int fd, char out[GCI_TERMINAL_SIZE])
{
	struct stat s;

	if (fstat(fd, &s))
		return -1;
	snprintf(out, GCI_TERMINAL_SIZE, "%" PRIuMAX ":%" PRIuMAX, (uintmax_t)s.st_dev,
		(uintmax_t)s.st_ino);
	return 0;
}

int gci_is_terminal(int fd)
{
	const char *said = getenv(GCI_TERMINAL);
	char name[GCI_TERMINAL_SIZE];

	return isatty(fd) || (said && !gci_terminal_name(fd, name) && !strcmp(name, said));
}

int gci_terminal_columns(int fd)
{
	const char *said = getenv("COLUMNS"); /* of the terminal at the other end of the pipe */
	struct winsize w;
	int n;

	if (!ioctl(fd, TIOCGWINSZ, &w) && w.ws_col)
		return w.ws_col;
	n = said ? atoi(said) : 0;
	return n > 0 ? n : 80;
}
