/* SPDX-License-Identifier: MIT */
#include "shaping/qdisc.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

/* One request, all answers; each message goes to `take`. */
static int dump(uint16_t type, int ifindex, uint32_t parent, mnl_cb_t take, void *arg)
{
	char text[32768]; /* the kernel's largest part of an answer */
	struct nlmsghdr *h = mnl_nlmsg_put_header(text);
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	struct tcmsg *tc;
	ssize_t n;
	int rc = -1, err;

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	h->nlmsg_seq = 1;
	tc = mnl_nlmsg_put_extra_header(h, sizeof(*tc));
	tc->tcm_family = AF_UNSPEC;
	tc->tcm_ifindex = ifindex;
	tc->tcm_parent = parent;
	if (s && !mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) &&
		mnl_socket_sendto(s, h, h->nlmsg_len) >= 0)
		do {
			n = mnl_socket_recvfrom(s, text, sizeof(text));
			rc = n < 0 ? -1
				   : mnl_cb_run(text, (size_t)n, 1, mnl_socket_get_portid(s), take,
					     arg);
		} while (rc > 0);
	err = errno;
	if (s)
		mnl_socket_close(s);
	errno = err;
	return rc;
}

struct list {
	struct gci_qdisc *v;
	unsigned n;
	int ifindex;
};

static void take_fq(struct gci_qdisc *q, const struct nlattr *options)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, options)
	{
		if (mnl_attr_get_type(a) == TCA_FQ_HORIZON && !mnl_attr_validate(a, MNL_TYPE_U32))
			q->horizon_ns = mnl_attr_get_u32(a) * 1000ull;
	}
}

static void take_stats(struct gci_qdisc *q, const struct nlattr *stats)
{
	struct gnet_stats_basic basic;
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, stats)
	{
		if (mnl_attr_get_type(a) != TCA_STATS_BASIC ||
			mnl_attr_get_payload_len(a) < sizeof(basic.bytes))
			continue;
		memcpy(&q->nbytes, mnl_attr_get_payload(a), sizeof(q->nbytes));
	}
}

static int take_qdisc(const struct nlmsghdr *h, void *arg)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(h);
	const struct nlattr *a, *options = NULL;
	struct list *l = arg;
	struct gci_qdisc *q;

	if (h->nlmsg_type != RTM_NEWQDISC || mnl_nlmsg_get_payload_len(h) < sizeof(*tc) ||
		tc->tcm_ifindex != l->ifindex || l->n == GCI_QDISCS)
		return MNL_CB_OK;
	q = &l->v[l->n++];
	memset(q, 0, sizeof(*q));
	q->handle = tc->tcm_handle;
	q->parent = tc->tcm_parent;
	mnl_attr_for_each(a, h, sizeof(*tc))
	{
		if (mnl_attr_get_type(a) == TCA_KIND)
			snprintf(q->kind, sizeof(q->kind), "%.*s", (int)mnl_attr_get_payload_len(a),
				mnl_attr_get_str(a));
		else if (mnl_attr_get_type(a) == TCA_OPTIONS)
			options = a;
		else if (mnl_attr_get_type(a) == TCA_STATS2)
			take_stats(q, a);
	}
	if (options && !strcmp(q->kind, "fq"))
		take_fq(q, options);
	return MNL_CB_OK;
}

int gci_qdisc_list(int ifindex, struct gci_qdisc out[GCI_QDISCS], struct gci_error *e)
{
	struct list l = {.v = out, .ifindex = ifindex};

	if (dump(RTM_GETQDISC, ifindex, 0, take_qdisc, &l) < 0)
		return gci_error_errno(e, "cannot ask for the queues of interface %d", ifindex);
	return (int)l.n;
}

/* Has queues below it. A queue's parent is a class of the upper one, of its major number. */
static int has_children(const struct gci_qdisc *all, unsigned n, const struct gci_qdisc *q)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (&all[i] != q && TC_H_MAJ(all[i].parent) == TC_H_MAJ(q->handle) &&
			all[i].parent != TC_H_ROOT && all[i].parent != TC_H_INGRESS)
			return 1;
	return 0;
}

int gci_qdisc_has_fq(
	const struct gci_qdisc *q, unsigned n, const char *dev, char why[GCI_QDISC_WHY])
{
	const char *other = n ? NULL : "no queue";
	unsigned i, nfq = 0;

	for (i = 0; i < n; i++) {
		if (q[i].parent == TC_H_INGRESS || has_children(q, n, &q[i]))
			continue;
		if (!strcmp(q[i].kind, "fq"))
			nfq++;
		else
			other = q[i].kind;
	}
	if (nfq && !other)
		return 1;
	snprintf(why, GCI_QDISC_WHY, "%s has %s instead of fq: tc qdisc replace dev %s root fq",
		dev, other ? other : "no queue", dev);
	return 0;
}

uint64_t gci_qdisc_horizon_ns(const struct gci_qdisc *q, unsigned n)
{
	uint64_t least = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		if (q[i].horizon_ns && (!least || q[i].horizon_ns < least))
			least = q[i].horizon_ns;
	return least;
}

static int take_filter(const struct nlmsghdr *h, void *arg)
{
	/* A priority without a filter is told of, too: with no handle. */
	const struct tcmsg *tc = mnl_nlmsg_get_payload(h);

	if (h->nlmsg_type == RTM_NEWTFILTER && mnl_nlmsg_get_payload_len(h) >= sizeof(*tc) &&
		tc->tcm_handle)
		*(int *)arg = 1;
	return MNL_CB_OK;
}

int gci_qdisc_has_filters(int ifindex, struct gci_error *e)
{
	static const uint32_t minors[] = {TC_H_MIN_INGRESS, TC_H_MIN_EGRESS};
	int i, found = 0;

	for (i = 0; i < 2; i++)
		if (dump(RTM_GETTFILTER, ifindex, TC_H_MAKE(TC_H_CLSACT, minors[i]), take_filter,
			    &found) < 0)
			return gci_error_errno(
				e, "cannot ask for the filters of interface %d", ifindex);
	return found;
}
