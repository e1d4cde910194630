/* SPDX-License-Identifier: MIT
 * Lock files of a device of this network namespace, by which processes of any user see what others
 * do with it: the files stay, their locks (flock(2)) end with whoever holds them. Anybody may hold
 * one, and for ever: do not wait for it without an end.
 *
 *	fd = gci_mark_open("pace", "eth0");
 *	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB))
 *		puts("somebody else paces there");
 */
#ifndef GCI_SHAPING_MARK_H
#define GCI_SHAPING_MARK_H

/* A descriptor of a regular file, of whichever user; or -1 with errno. */
int gci_mark_open(const char *what, const char *dev);

#endif
