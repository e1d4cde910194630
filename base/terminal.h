/* SPDX-License-Identifier: MIT
 * Who reads what is written to a descriptor. */
#ifndef GCI_BASE_TERMINAL_H
#define GCI_BASE_TERMINAL_H

#include <stddef.h>

/* The name of the variable, and room for its value. */
#define GCI_TERMINAL      "GRIDCOLL_TERMINAL"
#define GCI_TERMINAL_SIZE 48

/* True if `fd` is a terminal, or the pipe to one that GCI_TERMINAL names: somebody hands on what
 * comes through it as it comes. A pipe that has taken its place (2>file) is another one. */
int gci_is_terminal(int fd);

/* How wide it is: 80 if nobody knows. */
int gci_terminal_columns(int fd);

/* What GCI_TERMINAL says of the pipe `fd`: its device and inode. 0, or -1 with errno. */
int gci_terminal_name(int fd, char out[GCI_TERMINAL_SIZE]);

#endif
