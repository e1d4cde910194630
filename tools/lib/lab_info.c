/* SPDX-License-Identifier: MIT */
#include "tools/lib/lab_info.h"

#include "base/buf.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_OVERHEAD 66

static char *copy_string(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? gci_strdup(s) : NULL;
}

/* What may stand in a command line. */
static int is_name(const char *s)
{
	return s && *s && *s != '-' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
		       strlen(s);
}

static int read_links(struct gct_lab *lab, const json_t *links)
{
	size_t i, n = json_array_size(links);

	lab->links = gci_calloc(n, sizeof(*lab->links));
	if (!lab->links)
		return -1;
	for (i = 0; i < n; i++) {
		const json_t *l = json_array_get(links, i);
		struct gct_lab_link *out = &lab->links[lab->nlinks++];

		out->from = copy_string(l, "from");
		out->to = copy_string(l, "to");
		out->netns = copy_string(l, "netns");
		out->dev = copy_string(l, "dev");
		out->counter = copy_string(l, "counter");
		if (!out->from || !out->to || !is_name(out->netns) || !is_name(out->dev) ||
			!is_name(out->counter))
			return -1;
	}
	return 0;
}

int gct_lab_read(struct gct_lab *lab, struct gci_error *e)
{
	const char *path = getenv("GRIDCOLL_LAB");
	json_error_t why;
	json_t *root;
	json_int_t k;

	memset(lab, 0, sizeof(*lab));
	lab->dilation = 1;
	if (!path || !*path)
		return 0;
	root = json_load_file(path, 0, &why);
	if (!root)
		return gci_error_set(e, GCOLL_ERR_PARSE, "%s:%d: %s", path, why.line, why.text);
	k = json_integer_value(json_object_get(root, "dilation"));
	lab->backend = copy_string(root, "backend");
	if (k < 1 || k > UINT32_MAX || !lab->backend ||
		read_links(lab, json_object_get(root, "links"))) {
		json_decref(root);
		gct_lab_free(lab);
		return gci_error_set(e, GCOLL_ERR_PARSE,
			"%s: expected dilation, backend and links as `gridcoll lab` writes them",
			path);
	}
	lab->dilation = (uint32_t)k;
	json_decref(root);
	return 0;
}

void gct_lab_free(struct gct_lab *lab)
{
	int i;

	for (i = 0; i < lab->nlinks; i++) {
		gci_free(lab->links[i].from);
		gci_free(lab->links[i].to);
		gci_free(lab->links[i].netns);
		gci_free(lab->links[i].dev);
		gci_free(lab->links[i].counter);
	}
	gci_free(lab->links);
	gci_free(lab->backend);
	memset(lab, 0, sizeof(*lab));
}

/* Counters live in the link's own network namespace; iproute2 reads them there. */
static int link_nbytes(const struct gct_lab_link *l, uint64_t *nbytes, struct gci_error *e)
{
	char *command = gci_asprintf("ip -n '%s' -s -j link show dev '%s'", l->netns, l->dev);
	FILE *f = command ? popen(command, "re") : NULL;
	json_t *root = f ? json_loadf(f, 0, NULL) : NULL;
	const json_t *tx =
		json_object_get(json_object_get(json_array_get(root, 0), "stats64"), l->counter);
	json_int_t bytes = json_integer_value(json_object_get(tx, "bytes"));
	json_int_t packets = json_integer_value(json_object_get(tx, "packets"));
	int ok = json_is_object(tx);

	if (f)
		pclose(f);
	json_decref(root);
	gci_free(command);
	if (!ok)
		return gci_error_set(
			e, GCOLL_ERR_SYS, "cannot read the counters of %s in %s", l->dev, l->netns);
	*nbytes = (uint64_t)(bytes - PACKET_OVERHEAD * packets);
	return 0;
}

int gct_lab_wan_nbytes(const struct gct_lab *lab, uint64_t *nbytes, struct gci_error *e)
{
	uint64_t one = 0;
	int i, rc = 0;

	*nbytes = 0;
	for (i = 0; i < lab->nlinks && !rc; i++) {
		rc = link_nbytes(&lab->links[i], &one, e);
		if (!rc)
			*nbytes += one;
	}
	return rc;
}
