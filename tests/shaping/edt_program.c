/* SPDX-License-Identifier: MIT */
#include "tests/shaping/edt_program.h"

#include "tests/test.h"

#include <bpf/libbpf.h>
#include <string.h>

int edt_allowed(void)
{
	static int known, allowed;
	struct bpf_object *o;
	struct gci_error e = {0};

	if (known)
		return allowed;
	known = 1;
	allowed = !gci_bpf_load(&o, GCI_BPF_EDT, &e);
	if (allowed)
		bpf_object__close(o);
	else if (strstr(e.text, "not allowed") || strstr(e.text, "no bpf()"))
		print_message("eBPF programs are not tested here: %s\n", e.text);
	else
		fail_msg("%s", e.text);
	return allowed;
}

void edt_load(struct edt_program *l)
{
	struct gci_error e = {0};

	if (gci_bpf_load(&l->object, GCI_BPF_EDT, &e))
		fail_msg("%s", e.text);
	l->prog = bpf_program__fd(bpf_object__find_program_by_name(l->object, GCI_EDT_PROGRAM));
	if (gci_edt_tables_new(&l->tables, l->object, &e))
		fail_msg("%s", e.text);
	l->tables.horizon_ns = FOREVER;
}

void edt_unload(struct edt_program *l)
{
	gci_edt_tables_close(&l->tables);
	bpf_object__close(l->object);
}

int edt_class(
	struct edt_program *l, const char *name, const char *const *nets, unsigned n, uint64_t bps)
{
	struct gci_hold holder = {.fd = -1};
	struct gci_error e = {0};
	struct gci_net v[8];
	unsigned i, left;
	int number;

	for (i = 0; i < n; i++)
		assert_int_equal(gci_net_parse(&v[i], nets[i], &e), 0);
	number = gci_edt_tables_class(&l->tables, name, &e);
	assert_true(number >= 0);
	if (gci_edt_tables_route(&l->tables, number, v, n, &e) ||
		gci_edt_tables_ask(&l->tables, &holder, number, bps, &e) ||
		gci_edt_tables_settle(&l->tables, &holder, &left, &e))
		fail_msg("%s", e.text);
	return number;
}
