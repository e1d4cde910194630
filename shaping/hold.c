/* SPDX-License-Identifier: MIT
 * Byte 0 of the file is the lock, byte N the life of holder N. Locks of open file descriptions:
 * children that were not given the descriptor do not have it, and numbers of processes, which come
 * again and differ between containers, are not needed. */
#include "shaping/hold.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct flock byte(short type, uint64_t at)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
}

int gci_hold_open(struct gci_hold *h, struct gci_error *e)
{
	struct stat st;

	*h = (struct gci_hold){.fd = -1};
	h->fd = open(GCI_HOLD_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (h->fd < 0 || fstat(h->fd, &st)) {
		if (errno == EACCES)
			gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
				"not allowed to open " GCI_HOLD_FILE ": this needs root");
		else
			gci_error_errno(e, "cannot open " GCI_HOLD_FILE);
		gci_hold_close(h);
		return GCOLL_ERR_UNSUPPORTED;
	}
	h->realm = (uint64_t)st.st_dev << 32 ^ st.st_ino;
	return 0;
}

void gci_hold_close(struct gci_hold *h)
{
	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
}

int gci_hold_lock(struct gci_hold *h, struct gci_error *e)
{
	struct flock l = byte(F_WRLCK, 0);

	while (fcntl(h->fd, F_OFD_SETLKW, &l))
		if (errno != EINTR)
			return gci_error_errno(e, "cannot lock " GCI_HOLD_FILE);
	return 0;
}

void gci_hold_unlock(struct gci_hold *h)
{
	struct flock l = byte(F_UNLCK, 0);

	fcntl(h->fd, F_OFD_SETLK, &l);
}

int gci_hold_join(struct gci_hold *h, struct gci_error *e)
{
	uint64_t id = gci_now_ns();
	struct flock l = byte(F_WRLCK, id);

	while (fcntl(h->fd, F_OFD_SETLK, &l)) {
		if (errno != EAGAIN && errno != EACCES)
			return gci_error_errno(e, "cannot lock " GCI_HOLD_FILE);
		l.l_start = (off_t)++id; /* another has begun in the same nanosecond */
	}
	h->id = id;
	return 0;
}

int gci_hold_lives(const struct gci_hold *h, uint64_t id)
{
	struct flock l = byte(F_WRLCK, id);

	if (id == h->id || id > INT64_MAX)
		return 1;
	return fcntl(h->fd, F_OFD_GETLK, &l) || l.l_type != F_UNLCK;
}
