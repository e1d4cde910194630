/* SPDX-License-Identifier: MIT */
#include "netem/labfile.h"

#include "base/buf.h"
#include "base/file.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static json_t *hosts_json(const struct gci_lab_plan *plan)
{
	json_t *hosts = json_array();
	int i;

	for (i = 0; i < plan->nhosts; i++) {
		const struct gci_lab_host *h = &plan->hosts[i];

		json_array_append_new(
			hosts, json_pack("{ssssssssss}", "name", h->name, "netns", h->netns, "addr",
				       h->addr, "port_netns", h->port_netns, "port", h->port));
	}
	return hosts;
}

static json_t *links_json(const struct gci_lab_plan *plan, const struct gci_grid *g)
{
	json_t *links = json_array();
	int i;

	for (i = 0; i < plan->nwires; i++) {
		const struct gci_lab_wire *w = &plan->wires[i];

		json_array_append_new(
			links, json_pack("{ssssssssss}", "from", g->clusters[w->from].name, "to",
				       g->clusters[w->to].name, "netns", w->netns, "dev", w->dev,
				       "counter", w->counter));
	}
	return links;
}

int gci_labfile_write(const char *path, const struct gci_lab_plan *plan,
	const struct gci_grid *dilated, uint32_t dilation, const char *backend, struct gci_error *e)
{
	struct gci_buf grid = {0};
	char tmp[4096];
	json_t *root;
	int rc = 0;

	gci_grid_print(dilated, &grid);
	root = json_pack("{si,ss,si,ss,so,so}", "version", GCI_LABFILE_VERSION, "backend", backend,
		"dilation", (int)dilation, "grid", gci_buf_cstr(&grid), "hosts", hosts_json(plan),
		"links", links_json(plan, dilated));
	/* Readers find the whole file or none. */
	snprintf(tmp, sizeof(tmp), "%s.new", path);
	if (!root || grid.failed)
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	else if (json_dump_file(root, tmp, JSON_INDENT(1)) || rename(tmp, path))
		rc = gci_error_errno(e, "cannot write %s", path);
	json_decref(root);
	gci_buf_free(&grid);
	return rc;
}

static int copy_string(char *out, size_t size, const json_t *from, const char *key)
{
	const char *s = json_string_value(json_object_get(from, key));

	if (!s || strlen(s) >= size)
		return -1;
	memcpy(out, s, strlen(s) + 1);
	return 0;
}

void gci_labfile_name_hosts(const struct gci_lab_plan *plan)
{
	static const char path[] = "/run/gridcoll/hosts";
	char own[256] = "";
	FILE *f = fopen(path, "we");
	int i;

	if (!f)
		return;
	gethostname(own, sizeof(own) - 1);
	fprintf(f, "127.0.0.1 localhost %s\n::1 localhost\n", own);
	for (i = 0; i < plan->nhosts; i++)
		fprintf(f, "%s %s\n", plan->hosts[i].addr, plan->hosts[i].name);
	if (!fclose(f))
		mount(path, "/etc/hosts", NULL, MS_BIND, NULL);
}

int gci_labfile_port(
	const char *path, const char *host, struct gci_lab_port *port, struct gci_error *e)
{
	struct gci_buf text = {0};
	json_error_t why;
	json_t *root, *h;
	size_t i;
	int rc = gci_file_read(path, GCI_GRID_MAX_TEXT, &text, e);

	if (rc) {
		gci_buf_free(&text);
		return rc;
	}
	root = json_loadb(text.len ? (const char *)text.data : "", text.len, 0, &why);
	gci_buf_free(&text);
	if (!root)
		return gci_error_set(e, GCOLL_ERR_PARSE, "%s:%d: %s, expected a lab.json", path,
			why.line > 0 ? why.line : 1, why.text);
	rc = gci_error_set(NULL, GCOLL_ERR_INVAL, "-");
	json_array_foreach (json_object_get(root, "hosts"), i, h) {
		const char *name = json_string_value(json_object_get(h, "name"));

		if (!name || strcmp(name, host))
			continue;
		rc = copy_string(port->netns, sizeof(port->netns), h, "port_netns") ||
				     copy_string(port->dev, sizeof(port->dev), h, "port")
			     ? gci_error_set(e, GCOLL_ERR_PARSE,
				       "%s: no port of host %s, expected a lab.json of this "
				       "version",
				       path, host)
			     : 0;
		break;
	}
	if (rc)
		gci_error_set(e, rc, "host %s is not in the lab, expected one of its grid", host);
	json_decref(root);
	return rc;
}
