/* SPDX-License-Identifier: MIT
 * Who starts whom: where hosts are more than one machine shall start by ssh, hosts that run start
 * others. Pure.
 *
 *	rc = gci_starters(clusters, nhosts, nclusters, own, fanout, starters);
 *	for (i = 0; i < nhosts; i++)
 *		host starters[i] (GCI_STARTER_SELF: this machine) starts host i
 */
#ifndef GCI_LAUNCHER_STARTERS_H
#define GCI_LAUNCHER_STARTERS_H

#include <stdint.h>

#define GCI_STARTERS_FANOUT 32 /* the default */
#define GCI_STARTER_SELF    UINT32_MAX

/* Host i is in cluster clusters[i] < nclusters; this machine is in cluster `own`, or in none (-1).
 * Up to `fanout` (at least 2) hosts this machine starts all by itself. Of more it starts as many at
 * most, and so does each of them, in levels that are as few as can be in a cluster; starters come
 * before whom they start. Only the first host of a cluster is started from another cluster, so one
 * connection crosses over to each.
 * 0, or GCOLL_ERR_NOMEM. */
int gci_starters(const uint32_t *clusters, uint32_t nhosts, uint32_t nclusters, int own,
	uint32_t fanout, uint32_t *starters);

#endif
