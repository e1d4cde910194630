/* SPDX-License-Identifier: MIT */
#include "shaping/htb.h"

#include "base/clock.h"
#include "shaping/mark.h"
#include "shaping/qdisc.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAJOR    0x6c1du /* of our queue, by which it is known */
#define BURST_NS 2000000u
#define TICK_NS  64u /* the kernel's unit of a burst (PSCHED_SHIFT) */

/* Whoever makes or removes the queue has the lock for a moment. */
#define LOCK_TRIES   100
#define LOCK_WAIT_NS 10000000

uint32_t gci_htb_priority(unsigned number)
{
	return MAJOR << 16 | number;
}

/* Sends a request and waits for the answer: 0 or -errno. */
static int ask(struct nlmsghdr *h)
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	char text[8192];
	ssize_t n = -1;
	int rc;

	h->nlmsg_seq = 1;
	if (s && !mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) &&
		mnl_socket_sendto(s, h, h->nlmsg_len) >= 0)
		n = mnl_socket_recvfrom(s, text, sizeof(text));
	rc = n < 0 || mnl_cb_run(text, (size_t)n, 1, mnl_socket_get_portid(s), NULL, NULL) < 0
		     ? -errno
		     : 0;
	if (s)
		mnl_socket_close(s);
	return rc;
}

static struct nlmsghdr *request(
	char *text, uint16_t type, uint16_t flags, int ifindex, uint32_t parent, uint32_t handle)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(text);
	struct tcmsg *tc;

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	tc = mnl_nlmsg_put_extra_header(h, sizeof(*tc));
	tc->tcm_family = AF_UNSPEC;
	tc->tcm_ifindex = ifindex;
	tc->tcm_parent = parent;
	tc->tcm_handle = handle;
	return h;
}

/* What has no class goes on at once. -EEXIST: there is a queue that somebody made. */
static int add_root(int ifindex)
{
	const struct tc_htb_glob init = {.version = 3, .rate2quantum = 10};
	char text[1024];
	struct nlmsghdr *h = request(
		text, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex, TC_H_ROOT, MAJOR << 16);
	struct nlattr *options;

	mnl_attr_put_strz(h, TCA_KIND, "htb");
	options = mnl_attr_nest_start(h, TCA_OPTIONS);
	mnl_attr_put(h, TCA_HTB_INIT, sizeof(init), &init);
	mnl_attr_nest_end(h, options);
	return ask(h);
}

static int remove_root(int ifindex)
{
	char text[1024];

	return ask(request(text, RTM_DELQDISC, 0, ifindex, TC_H_ROOT, MAJOR << 16));
}

/* A burst of a few milliseconds, but room for one packet of the kernel's largest. */
static uint32_t burst_ticks(uint64_t rate)
{
	uint64_t ns = 65536ull * 1000000000u / rate;

	ns = ns > BURST_NS ? ns : BURST_NS;
	return ns / TICK_NS > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / TICK_NS);
}

int gci_htb_class(struct gci_htb *h, unsigned number, uint64_t bps, struct gci_error *e)
{
	uint64_t rate = bps / 8 ? bps / 8 : 1;
	struct tc_ratespec spec = {.linklayer = TC_LINKLAYER_ETHERNET,
		.rate = rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX};
	struct tc_htb_opt opt = {.rate = spec, .ceil = spec, .quantum = 60000};
	char text[1024];
	struct nlmsghdr *m = request(text, RTM_NEWTCLASS, NLM_F_CREATE, h->ifindex, MAJOR << 16,
		gci_htb_priority(number));
	struct nlattr *options;
	int rc;

	opt.buffer = opt.cbuffer = burst_ticks(rate);
	mnl_attr_put_strz(m, TCA_KIND, "htb");
	options = mnl_attr_nest_start(m, TCA_OPTIONS);
	mnl_attr_put(m, TCA_HTB_PARMS, sizeof(opt), &opt);
	if (rate >= UINT32_MAX) {
		mnl_attr_put_u64(m, TCA_HTB_RATE64, rate);
		mnl_attr_put_u64(m, TCA_HTB_CEIL64, rate);
	}
	mnl_attr_nest_end(m, options);
	rc = ask(m);
	return rc ? gci_error_set(e, GCOLL_ERR_SYS, "a class of HTB: %s", strerror(-rc)) : 0;
}

static int refuse(const char *dev, int error, struct gci_error *e)
{
	if (error == -EEXIST)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"%s has a queue that somebody set up (tc qdisc show dev %s), "
			"which is left alone",
			dev, dev);
	if (error == -EWOULDBLOCK || error == -EACCES)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"no HTB on %s: gridcoll-htb-*-%s in /run/lock or /tmp is %s", dev, dev,
			error == -EACCES ? "another user's, who may remove it"
					 : "locked by another process (lslocks tells which)");
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "no HTB on %s: %s%s", dev, strerror(-error),
		error == -EPERM    ? " (it needs CAP_NET_ADMIN)"
		: error == -ENOENT ? " (modprobe sch_htb)"
				   : "");
}

static int is_ours(int ifindex)
{
	struct gci_qdisc q[GCI_QDISCS];
	int i, n = gci_qdisc_list(ifindex, q, NULL);

	for (i = 0; i < n; i++)
		if (q[i].parent == TC_H_ROOT && q[i].handle == MAJOR << 16 &&
			!strcmp(q[i].kind, "htb"))
			return 1;
	return 0;
}

/* What another user may take away is no lock: who comes next would make a new one. */
static int open_lock(const char *dev)
{
	struct stat s;
	int fd = gci_mark_open("htb", dev);

	if (fd < 0 || (!fstat(fd, &s) && (!s.st_uid || s.st_uid == geteuid())))
		return fd;
	close(fd);
	errno = EACCES;
	return -1;
}

/* 0 or -errno; not for ever, since any user can lock the file. */
static int share(int fd)
{
	int i, rc = flock(fd, LOCK_SH | LOCK_NB);

	for (i = 0; rc && errno == EWOULDBLOCK && i < LOCK_TRIES; i++) {
		gci_sleep_ns(LOCK_WAIT_NS);
		rc = flock(fd, LOCK_SH | LOCK_NB);
	}
	return rc ? -errno : 0;
}

/* Where the first one was refused, or gone meanwhile; of several that find so, one makes it. */
static int add_missing_root(int ifindex)
{
	int rc = is_ours(ifindex) ? 0 : add_root(ifindex);

	return rc == -EEXIST && is_ours(ifindex) ? 0 : rc;
}

int gci_htb_open(struct gci_htb *h, const char *dev, struct gci_error *e)
{
	int rc = 0;

	h->ifindex = (int)if_nametoindex(dev);
	h->lock_fd = h->ifindex ? open_lock(dev) : -1;
	if (h->lock_fd < 0)
		rc = -errno;
	/* Alone: what is there is nobody's. Else whoever was first has made the queue, or is at it.
	 */
	if (!rc && !flock(h->lock_fd, LOCK_EX | LOCK_NB)) {
		if (is_ours(h->ifindex))
			remove_root(h->ifindex);
		rc = add_root(h->ifindex);
	}
	if (!rc)
		rc = share(h->lock_fd);
	if (!rc)
		rc = add_missing_root(h->ifindex);
	if (!rc)
		return 0;
	if (h->lock_fd >= 0)
		close(h->lock_fd);
	h->lock_fd = -1;
	return refuse(dev, rc, e);
}

void gci_htb_close(struct gci_htb *h)
{
	if (h->lock_fd < 0)
		return;
	if (!flock(h->lock_fd, LOCK_EX | LOCK_NB) && is_ours(h->ifindex))
		remove_root(h->ifindex);
	close(h->lock_fd);
	h->lock_fd = -1;
}
