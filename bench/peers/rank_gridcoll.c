/* SPDX-License-Identifier: MIT */
#include "bench/peers/rank.h"

#include <gridcoll/gridcoll.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gcoll_comm *world;

static int told(int rc)
{
	if (rc)
		fprintf(stderr, "gridcoll: %s\n", gcoll_last_error());
	return rc ? -1 : 0;
}

/* GCB_SET: settings such as "checksum=off,bcast=chain". */
static int apply_settings(const char *text)
{
	char copy[256], *rest = NULL, *key, *value;
	int rc = 0;

	snprintf(copy, sizeof(copy), "%s", text ? text : "");
	for (key = strtok_r(copy, ",", &rest); key && !rc; key = strtok_r(NULL, ",", &rest)) {
		value = strchr(key, '=');
		if (!value) {
			fprintf(stderr, "GCB_SET: \"%s\", expected KEY=VALUE\n", key);
			return -1;
		}
		*value++ = '\0';
		rc = told(gcoll_comm_set(world, key, value));
	}
	return rc;
}

static int open_gridcoll(struct gcb_place *p)
{
	if (told(gcoll_init(&world)) || apply_settings(getenv("GCB_SET")))
		return -1;
	p->rank = gcoll_rank(world);
	p->size = gcoll_size(world);
	return 0;
}

static int bcast(void *buf, uint64_t nbytes)
{
	return told(gcoll_bcast(buf, nbytes, GCOLL_BYTE, 0, world));
}

static int allreduce(const float *in, float *out, uint64_t n)
{
	return told(gcoll_allreduce(in, out, n, GCOLL_FLOAT32, GCOLL_SUM, world));
}

static int allgather(const void *in, void *out, uint64_t nbytes)
{
	return told(gcoll_allgather(in, out, nbytes, GCOLL_BYTE, world));
}

static int barrier(void)
{
	return told(gcoll_barrier(world));
}

static void close_gridcoll(void)
{
	gcoll_finalize(world);
}

const struct gcb_lib gcb_lib_gridcoll = {
	"gridcoll", open_gridcoll, bcast, allreduce, allgather, barrier, close_gridcoll};
